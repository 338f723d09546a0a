#include <array>

#include "codec.h"

namespace bench {
namespace {

// The level of a PNG codec is zlib's, or -1 for libpng's default. The levels of the others are their libraries' quality
// or effort.
constexpr std::array kCodecs = {
    Codec{"png", "PNG", "libpng", png_adapter, -1, false},
    Codec{"png9", "PNG, level 9", "libpng", png_level_adapter, 9, false},
    Codec{"spng", "PNG by spng", "libspng", spng_adapter, 0, false, "libspng-dev"},
    Codec{"stb", "PNG by stb_image", "stb_image", stb_adapter, 0, false, "libstb-dev"},
    Codec{"jpeg90", "JPEG, quality 90", "libjpeg", jpeg_adapter, 90, true},
    Codec{"jpeg100", "JPEG, quality 100", "libjpeg", jpeg_adapter, 100, true},
    Codec{"webp", "WebP lossless", "libwebp", webp_adapter, 6, false},
    Codec{"webp90", "WebP, quality 90", "libwebp", webp_lossy_adapter, 90, true},
    Codec{"jxl1", "JPEG XL, effort 1", "libjxl", jxl_adapter, 1, false, "libjxl-dev"},
    Codec{"jxl3", "JPEG XL, effort 3", "libjxl", jxl_adapter, 3, false, "libjxl-dev"},
    Codec{"jxl7", "JPEG XL, effort 7", "libjxl", jxl_adapter, 7, false, "libjxl-dev"},
    Codec{"jpegls", "JPEG-LS", "CharLS", jpegls_adapter, 0, false, "libcharls-dev"},
    Codec{"qoi", "QOI", "qoi", qoi_adapter, 0, false, "libqoi-dev"},
    Codec{"zstd", "Zstandard on samples", "libzstd", zstd_adapter, 3, false},
    Codec{"l3-paper", "L3 of the paper", "l3", l3_paper_adapter, 0, false},
    Codec{"l3-fast", "l3 fast", "l3", l3_fast_adapter, 0, false},
    Codec{"l3-dense1", "l3 dense, effort 1", "l3", l3_dense_adapter, 1, false},
    Codec{"l3-dense2", "l3 dense, effort 2", "l3", l3_dense_adapter, 2, false},
    Codec{"l3-dense3", "l3 dense, effort 3", "l3", l3_dense_adapter, 3, false},
    Codec{"l3-dense4", "l3 dense, effort 4", "l3", l3_dense_adapter, 4, false},
    Codec{"l3-dense5", "l3 dense, effort 5", "l3", l3_dense_adapter, 5, false},
    Codec{"l3-dense6", "l3 dense, effort 6", "l3", l3_dense_adapter, 6, false},
    Codec{"l3-dense7", "l3 dense, effort 7", "l3", l3_dense_adapter, 7, false},
    Codec{"l3-dense8", "l3 dense, effort 8", "l3", l3_dense_adapter, 8, false},
    Codec{"l3-dense9", "l3 dense, effort 9", "l3", l3_dense_adapter, 9, false},
};

}  // namespace

std::span<const Codec> all_codecs() { return kCodecs; }

uint64_t sample_bytes(const formats::Image& image) {
  return uint64_t{image.width} * image.height * formats::channels(image.colour) * formats::bytes_per_sample(image.bits);
}

void make_room(formats::Image& image) { image.pixels.resize(sample_bytes(image)); }

}  // namespace bench
