// Zstandard on raw samples, as in a folder of compressed arrays.
#include <zstd.h>

#include <memory>

#include "codec.h"

namespace bench {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

std::string version() { return std::string("libzstd ") + ZSTD_versionString(); }

std::string cannot_hold(const formats::Image&) { return ""; }

std::optional<formats::Error> encode(const formats::Image& image, int level, bridge::Buffer& file) {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) return failed("out of memory");
  const size_t bound = ZSTD_compressBound(image.pixels.size());
  const size_t size =
      ZSTD_compressCCtx(context.get(), file.reset(bound), bound, image.pixels.data(), image.pixels.size(), level);
  if (ZSTD_isError(size) != 0) return failed(ZSTD_getErrorName(size));
  file.truncate(size);
  return std::nullopt;
}

std::optional<formats::Error> decode(std::span<const uint8_t> file, formats::Image& image) {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) return failed("out of memory");
  make_room(image);
  const size_t size =
      ZSTD_decompressDCtx(context.get(), image.pixels.data(), image.pixels.size(), file.data(), file.size());
  if (ZSTD_isError(size) != 0) return failed(ZSTD_getErrorName(size));
  return size == image.pixels.size() ? std::nullopt : std::optional(failed("the decoded image has another size"));
}

constexpr Adapter kAdapter = {version, cannot_hold, encode, decode};

}  // namespace

const Adapter* zstd_adapter() { return &kAdapter; }

}  // namespace bench
