// The readers and writers of each format, which formats.cpp calls, and functions that they share. To add a format, add
// a file with these functions and a line in formats.cpp. The functions may throw std::bad_alloc and std::length_error;
// formats.cpp converts these to an Error. signatures.cpp has the is_ functions of formats that can be absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/formats.h"

namespace formats {

bool is_png(std::span<const uint8_t> file);
Result<Image> read_png(std::span<const uint8_t> file, const ReadOptions& options);
Result<std::vector<uint8_t>> write_png(const Image& image, const WriteOptions& options);

bool is_pnm(std::span<const uint8_t> file);
Result<Image> read_pnm(std::span<const uint8_t> file, const ReadOptions& options);
// `format` is pbm, pgm, ppm or pam.
Result<std::vector<uint8_t>> write_pnm(Format format, const Image& image, const WriteOptions& options);

bool is_jpeg(std::span<const uint8_t> file);
Result<Image> read_jpeg(std::span<const uint8_t> file, const ReadOptions& options);

bool is_webp(std::span<const uint8_t> file);
Result<Image> read_webp(std::span<const uint8_t> file, const ReadOptions& options);

bool is_bmp(std::span<const uint8_t> file);
Result<Image> read_bmp(std::span<const uint8_t> file, const ReadOptions& options);

bool is_gif(std::span<const uint8_t> file);
Result<Image> read_gif(std::span<const uint8_t> file, const ReadOptions& options);

bool is_psd(std::span<const uint8_t> file);
Result<Image> read_psd(std::span<const uint8_t> file, const ReadOptions& options);

bool is_tiff(std::span<const uint8_t> file);
Result<Image> read_tiff(std::span<const uint8_t> file, const ReadOptions& options);
Result<uint32_t> count_tiff_pages(std::span<const uint8_t> file);

bool is_jxl(std::span<const uint8_t> file);
Result<Image> read_jxl(std::span<const uint8_t> file, const ReadOptions& options);

// Looks at the last bytes of the file, so it must be called after all others.
bool is_tga(std::span<const uint8_t> file);
Result<Image> read_tga(std::span<const uint8_t> file, const ReadOptions& options);

// Returns an Error at `offset` if an image exceeds a limit. `header` is the image without its pixels.
std::optional<Error> over_limit(const Image& header, const ReadOptions& options, uint64_t offset);

// The size of Image::pixels. Cannot overflow after over_limit() or problem() has accepted the image.
size_t pixel_bytes(const Image& header);

inline void notice(std::vector<std::string>* notices, std::string line) {
  if (notices != nullptr) notices->push_back(std::move(line));
}

}  // namespace formats
