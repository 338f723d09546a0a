#include "version.h"

#include "l3/l3.h"

namespace tools {

std::string version_text() {
  const char* target = l3_cpu_target();
  return std::string("l3 ") + l3_version_text() +
         "\ncommit: " L3_COMMIT "\nprocessor targets: " L3_TARGETS " (in use: " +
         (target != nullptr ? target : "none") + ")\nCUDA: " L3_CUDA_PART;
}

}  // namespace tools
