// Messages to the logger of nvImageCodec.
#pragma once

#include <nvimgcodec.h>

#include "l3/l3.h"

namespace l3_nvimgcodec {

inline constexpr char kCodec[] = "l3";
inline constexpr char kParserId[] = "l3_parser";
inline constexpr char kDecoderId[] = "l3_decoder";
inline constexpr char kCudaDecoderId[] = "l3_cuda_decoder";

struct Log {
  const nvimgcodecFrameworkDesc_t* framework;
  const char* id;  // of the parser or decoder that speaks

  void error(const char* text) const;
  void error(const l3_error& error) const;
};

}  // namespace l3_nvimgcodec
