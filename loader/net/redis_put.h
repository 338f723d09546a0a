// Writing objects to Redis.
#pragma once

#include <string>

#include "redis_engine.h"

namespace loader::redis {

// Waits until the server has said OK to all values. Throws std::bad_alloc.
StoreFault put_object(Engine& engine, const std::string& prefix, const Upload& upload);

// Copies a fault where nothing may be thrown: without memory its text is lost.
void copy_fault(const StoreFault& from, StoreFault& to) noexcept;

}  // namespace loader::redis
