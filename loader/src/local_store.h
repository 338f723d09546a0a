// The store of local files.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "loader/store.h"

namespace loader {

// `root` is a folder, or empty: keys are then paths. At most `max_open_files` files stay open; 0: half of the files
// that the process may open.
std::unique_ptr<Store> make_local_store(std::string root, uint32_t max_open_files);

}  // namespace loader
