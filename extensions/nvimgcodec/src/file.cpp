#include "file.h"

#include "base/exif.h"

namespace l3_nvimgcodec {

bool File::open(const l3_limits* limits, l3_error& error) {
  if (bytes_.data() == nullptr) {
    error = {L3_ERROR_FILE, 0, L3_NO_TILE, "the stream could not be read"};
    return false;
  }
  options_.as_colours = 1;
  if (limits != nullptr && l3_read_info(bytes_.data(), bytes_.size(), limits, &info_, &error) != L3_OK) return false;
  if (l3_open(bytes_.data(), bytes_.size(), &options_, nullptr, 0, &file_, &error) != L3_OK) return false;
  if (l3_file_info(file_, &info_, &error) != L3_OK) return false;
  bits_ = info_.colour == L3_COLOUR_PALETTE ? 8 : info_.bits;
  channels_ = l3_file_pixel_bytes(file_) / (bits_ > 8 ? 2 : 1);

  const uint8_t* exif = nullptr;
  size_t exif_size = 0;
  if (l3_file_section(file_, L3_SECTION_EXIF, &exif, &exif_size, &error) != L3_OK) return false;
  orientation_ = base::orientation_of(exif, exif_size);
  return true;
}

}  // namespace l3_nvimgcodec
