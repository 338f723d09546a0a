// libFuzzer's hooks for targets whose whole input is a file.
#include "file_mutator.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_file(data, size, max_size, seed);
}
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_out_size, unsigned seed) {
  return fuzz::cross_files(a, a_size, b, b_size, out, max_out_size, seed);
}
