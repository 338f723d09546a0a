// GPGPU-Sim's functional executor as a shared library, which independent.cpp loads. Compiled with the headers of its
// checkout, which has what it needs of CUDA 11.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "libcuda/cuda_api_object.h"
#include "libcuda/gpgpu_context.h"
#include "src/cuda-sim/cuda-sim.h"
#include "src/cuda-sim/ptx_ir.h"
#include "src/cuda-sim/ptx_parser.h"
#include "src/gpgpu-sim/gpu-sim.h"
#include "src/gpgpusim_entrypoint.h"

namespace {

gpgpu_context* context;
std::map<std::string, function_info*> kernels;

gpgpu_sim* gpu() { return context->the_gpgpusim->g_the_gpu; }

}  // namespace

// Reads a PTX file. Wants gpgpusim.config in the current folder.
extern "C" void executor_load(const char* path) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // GPGPU-Sim says what is wrong, and ends the process
  context = GPGPU_Context();
  context->GPGPUSim_Init();
  std::ifstream in(path);
  std::stringstream stream;
  stream << in.rdbuf();
  const std::string text = stream.str();
  symbol_table* const symbols = context->gpgpu_ptx_sim_load_ptx_from_string(text.c_str(), 1);
  context->api->load_static_globals(symbols, STATIC_ALLOC_LIMIT, 0xFFFFFFFF, gpu());
  const std::regex entry("\\.entry (\\w+)");
  for (std::sregex_iterator found(text.begin(), text.end(), entry), end; found != end; ++found) {
    if (symbol* const known = symbols->lookup((*found)[1].str().c_str())) kernels[(*found)[1]] = known->get_pc();
  }
}

extern "C" bool executor_has(const char* kernel) { return kernels.count(kernel) != 0; }
extern "C" uint64_t executor_instructions() { return context->func_sim->g_ptx_sim_num_insn; }
extern "C" void executor_write(uint64_t at, const void* from, size_t size) {
  gpu()->get_global_memory()->write(at, size, from, nullptr, nullptr);
}
extern "C" void executor_read(uint64_t at, void* to, size_t size) { gpu()->get_global_memory()->read(at, size, to); }

extern "C" void executor_run(const char* kernel, unsigned blocks, unsigned threads, size_t count,
                             const void* const* arguments, const size_t* sizes) {
  function_info* const entry = kernels.at(kernel);
  gpgpu_ptx_sim_arg_list_t list;
  size_t offset = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t align = std::min(sizes[i], size_t{8});
    offset = (offset + align - 1) / align * align;
    list.push_front(gpgpu_ptx_sim_arg(arguments[i], sizes[i], offset));
    offset += sizes[i];
  }
  dim3 grid, block;
  grid.x = blocks;
  block.x = threads;
  grid.y = grid.z = block.y = block.z = 1;
  gpgpu_ptx_sim_info info;
  std::memset(&info, 0, sizeof(info));
  info.regs = 32;  // or it finds no place for a block
  entry->set_kernel_info(info);
  kernel_info_t* const grid_of = context->func_sim->gpgpu_opencl_ptx_sim_init_grid(entry, list, grid, block, gpu());
  gpu()->functional_launch(grid_of);
  context->func_sim->gpgpu_cuda_ptx_sim_main_func(*grid_of, true);
  gpu()->finish_functional_sim(grid_of);
}
