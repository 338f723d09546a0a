// Compares the device with libl3 on folders of L3 files: status, offset, tile, reason and pixels. It decodes the files
// in batches, and each one by l3::cuda::decode with limits. Made for the built vectors of spec/vectors.
//
// Usage: gpu_vectors [--quick] FOLDER...   (--quick: only small files in batches, for slow checkers). Exit status: 77
// without a device.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpu_files.h"

namespace {

using namespace gpu_files;
using l3::cuda::Decoder;
using l3::cuda::DeviceBuffer;
using l3::cuda::PinnedBuffer;
using l3::cuda::Stream;

constexpr uint32_t kBatch = 64;
constexpr uint64_t kMaxPixelBytes = 16 << 20;  // what has more is decoded in part
constexpr uint32_t kPart = 256;
constexpr uint64_t kQuickFile = 16 << 10, kQuickPixelBytes = 64 << 10;
constexpr uint8_t kPoison = 0xA5;

// A file as a whole, and a mirrored part of it.
void add_samples(const std::filesystem::path& path, bool quick, std::vector<Sample>& samples) {
  std::ifstream in(path, std::ios::binary);
  const Bytes file{std::istreambuf_iterator<char>(in), {}};
  if (!in) stop("cannot read " + path.string());
  l3_info info = l3_info_init();
  const l3_limits any = l3::no_limits();
  if (l3_read_info(file.data(), file.size(), &any, &info, nullptr) != L3_OK) {
    info.width = info.height = info.channels = 1;  // somebody asks for it all the same
  }
  if (quick && (file.size() > kQuickFile || info.image_bytes > kQuickPixelBytes)) return;
  const std::string name = path.parent_path().filename().string() + "/" + path.filename().string();
  const bool small = info.image_bytes <= kMaxPixelBytes;
  const uint32_t width = small ? info.width : std::min(info.width, kPart);
  const uint32_t height = small ? info.height : std::min(info.height, kPart);
  samples.push_back(sample(name, file, info, {0, 0, width, height}, 0));
  const uint32_t x = width / 3, y = height / 3;
  samples.push_back(sample(name + ", a part", file, info, {x, y, (width - x + 1) / 2, (height - y + 1) / 2},
                           uint32_t{L3_CUDA_FLIP} | uint32_t{L3_CUDA_COLOURS}));
}

// How many of a batch are not right.
uint32_t decode(std::span<const Sample* const> samples) {
  const Places places(samples);
  const Stream stream = take(l3::cuda::make_stream(), "a stream");
  const PinnedBuffer outputs = take(PinnedBuffer::make(places.output_bytes), "pinned memory");
  const DeviceBuffer files = take(DeviceBuffer::make(places.file_bytes), "device memory");
  const DeviceBuffer output = take(DeviceBuffer::make(places.output_bytes), "device memory");
  Decoder decoder = take(Decoder::make(places.capacity), "a decoder");
  for (size_t i = 0; i < samples.size(); ++i) {
    check(cudaMemcpy(files.bytes() + places.files[i], samples[i]->file.data(), samples[i]->file.size(),
                     cudaMemcpyHostToDevice),
          "cudaMemcpy");
    l3_cuda_image& image = decoder.images()[i];
    image = samples[i]->wanted;
    image.data = files.bytes() + places.files[i];
    image.out = output.bytes() + places.outputs[i];
  }
  check(cudaDeviceSynchronize(), "the device");
  check(cudaMemsetAsync(output.data(), kPoison, output.size(), stream.get()), "cudaMemsetAsync");
  l3_error error{};
  if (decoder.decode(static_cast<uint32_t>(samples.size()), stream.get(), &error) != L3_OK) {
    stop("the call: " + l3::message(error));
  }
  check(cudaMemcpyAsync(outputs.data(), output.data(), output.size(), cudaMemcpyDeviceToHost, stream.get()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream.get()), "decoding");
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < samples.size(); ++i) {
    const uint64_t end = i + 1 < samples.size() ? places.outputs[i + 1] : places.output_bytes;
    const std::string said =
        problem(*samples[i], decoder.result(i), outputs.bytes() + places.outputs[i], outputs.bytes() + end, kPoison);
    if (said.empty()) continue;
    std::printf("WRONG: %s\n", said.c_str());
    ++wrong;
  }
  return wrong;
}

// Whether l3::cuda::decode is like l3::decode.
bool alone_as_libl3(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  Bytes file{std::istreambuf_iterator<char>(in), {}};
  file.reserve(1);
  l3_decode_options options = l3_decode_options_init();
  options.as_colours = 1;
  const auto expected = l3::decode(file, options);
  const auto decoded = l3::cuda::decode(file, options);
  if (expected && decoded) return expected->bytes == decoded->bytes;
  if (!expected && !decoded) return l3::message(expected.error()) == l3::message(decoded.error());
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> folders(arguments + 1, arguments + count);
  const bool quick = std::erase(folders, "--quick") > 0;
  if (folders.empty()) {
    std::fputs("usage: gpu_vectors [--quick] FOLDER...\n", stderr);
    return 2;
  }
  want_device("gpu_vectors");
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".l3") paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Sample> samples;
  for (const std::filesystem::path& path : paths) add_samples(path, quick, samples);
  if (samples.empty()) stop("no files");
  uint32_t wrong = 0;
  for (size_t first = 0; first < samples.size(); first += kBatch) {
    std::vector<const Sample*> batch;
    for (size_t i = first; i < std::min(samples.size(), first + kBatch); ++i) batch.push_back(&samples[i]);
    wrong += decode(batch);
  }
  for (const std::filesystem::path& path : paths) {
    if (quick || alone_as_libl3(path)) continue;
    std::printf("WRONG: %s: alone, something else than libl3\n", path.c_str());
    ++wrong;
  }
  std::printf("vectors: %zu files, %zu decoded (whole or in part), %u wrong\n", paths.size(), samples.size(), wrong);
  return wrong > 0 ? 1 : 0;
}
