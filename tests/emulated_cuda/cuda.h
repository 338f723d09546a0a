// CUDA's driver on a processor: what is asked of it by way of cudaGetDriverEntryPointByVersion. Defined in driver.cpp.
#pragma once

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): they are CUDA's

enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201,
};
typedef int CUdevice;
typedef struct CUctx_st* CUcontext;

// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
