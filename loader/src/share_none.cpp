// Sharing batches on systems that lack what it needs: share_socket.h, share_memory.h.
#include "share.h"

namespace loader {

const char* complete_share(l3_loader_options&) { return "jobs can share batches on Linux only"; }

std::unique_ptr<SharedSource> share_batches(const l3_data_set&, const l3_loader_options&, Pipeline&) { return nullptr; }

}  // namespace loader
