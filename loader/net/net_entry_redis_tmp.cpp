// The entry of libl3_data_net.so.
#include <new>

#include "redis_store.h"

extern "C" __attribute__((visibility("default"))) loader::Store* l3_data_open_net_store(
    uint32_t version, const char* url, const loader::StoreOptions& options, loader::StoreFault& fault);

loader::Store* l3_data_open_net_store(uint32_t version, const char* url, const loader::StoreOptions& options,
                                      loader::StoreFault& fault) {
  if (version != loader::kNetVersion) {
    fault = {L3_ERROR_UNSUPPORTED, 0, L3_DATA_NONE, "libl3_data_net.so is of another version"};
    return nullptr;
  }
  try {
    return loader::open_redis(url, options, fault).release();
  } catch (const std::bad_alloc&) {
    fault = {L3_ERROR_MEMORY, 0, L3_DATA_NONE, "out of memory"};
    return nullptr;
  }
}
