// The entry of libl3_ext.so. nvImageCodec loads it and calls nvimgcodecExtensionModuleEntry.
#include <nvimgcodec.h>

#include <new>

#if L3_NVIMGCODEC_CUDA
#include "cuda_decoder.h"
#endif
#include "decoder.h"
#include "parser.h"

namespace l3_nvimgcodec {
namespace {

// What an instance of nvImageCodec has of this extension.
struct Extension {
  explicit Extension(const nvimgcodecFrameworkDesc_t& its_framework) : framework(its_framework) {}

  const nvimgcodecFrameworkDesc_t& framework;
  Log parser_log{&framework, kParserId}, decoder_log{&framework, kDecoderId};
  nvimgcodecParserDesc_t parser = parser_of(parser_log);
  nvimgcodecDecoderDesc_t decoder = decoder_of(decoder_log);
#if L3_NVIMGCODEC_CUDA
  Log cuda_log{&framework, kCudaDecoderId};
  nvimgcodecDecoderDesc_t cuda_decoder = cuda_decoder_of(cuda_log);
#endif
};

nvimgcodecStatus_t create(void*, nvimgcodecExtension_t* to, const nvimgcodecFrameworkDesc_t* framework) {
  if (to == nullptr || framework == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  auto* const extension = new (std::nothrow) Extension(*framework);
  if (extension == nullptr) return NVIMGCODEC_STATUS_EXTENSION_ALLOCATOR_FAILURE;
  framework->registerParser(framework->instance, &extension->parser, NVIMGCODEC_PRIORITY_NORMAL);
  framework->registerDecoder(framework->instance, &extension->decoder, NVIMGCODEC_PRIORITY_NORMAL);
#if L3_NVIMGCODEC_CUDA
  // It is asked first. What it refuses, the other one decodes.
  framework->registerDecoder(framework->instance, &extension->cuda_decoder, NVIMGCODEC_PRIORITY_HIGH);
#endif
  *to = reinterpret_cast<nvimgcodecExtension_t>(extension);
  return NVIMGCODEC_STATUS_SUCCESS;
}

nvimgcodecStatus_t destroy(nvimgcodecExtension_t handle) {
  if (handle == nullptr) return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  auto* const extension = reinterpret_cast<Extension*>(handle);
  const nvimgcodecFrameworkDesc_t& framework = extension->framework;
  framework.unregisterParser(framework.instance, &extension->parser);
  framework.unregisterDecoder(framework.instance, &extension->decoder);
#if L3_NVIMGCODEC_CUDA
  framework.unregisterDecoder(framework.instance, &extension->cuda_decoder);
#endif
  delete extension;
  return NVIMGCODEC_STATUS_SUCCESS;
}

}  // namespace
}  // namespace l3_nvimgcodec

extern "C" nvimgcodecStatus_t nvimgcodecExtensionModuleEntry(nvimgcodecExtensionDesc_t* to) {
  if (to == nullptr || to->struct_type != NVIMGCODEC_STRUCTURE_TYPE_EXTENSION_DESC) {
    return NVIMGCODEC_STATUS_EXTENSION_INVALID_PARAMETER;
  }
  *to = {NVIMGCODEC_STRUCTURE_TYPE_EXTENSION_DESC,
         sizeof(nvimgcodecExtensionDesc_t),
         nullptr,
         nullptr,
         "l3_ext",
         MAKE_SEMANTIC_VERSION(L3_VERSION_MAJOR, L3_VERSION_MINOR, L3_VERSION_PATCH),
         NVIMGCODEC_VER,
         l3_nvimgcodec::create,
         l3_nvimgcodec::destroy};
  return NVIMGCODEC_STATUS_SUCCESS;
}
