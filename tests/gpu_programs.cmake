# Tests that want a GPU, which are skipped where there is none. Read by the CMakeLists.txt above.
add_library(gpu_spin OBJECT tests/gpu_spin.cu)
# The standard is asked for by hand, as in kernels/.
set_target_properties(gpu_spin PROPERTIES CUDA_ARCHITECTURES "${L3_CUDA_ARCHITECTURES}" CUDA_STANDARD_REQUIRED OFF)
target_compile_options(gpu_spin PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --Werror=all-warnings>)

function(add_gpu_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE ${L3_COLD_OPTIONS})
  target_link_libraries(${name} PRIVATE l3::l3_cuda l3_internals CUDA::cudart_static Threads::Threads l3_warnings)
  set_property(GLOBAL APPEND PROPERTY L3_GPU_PROGRAMS ${name})
endfunction()

add_gpu_program(gpu_vectors tests/gpu_vectors.cpp)
add_gpu_program(gpu_leak tests/gpu_leak.cpp)
add_gpu_program(gpu_stream_order tests/gpu_stream_order.cpp $<TARGET_OBJECTS:gpu_spin>)
if(L3_TESTS)
  # What the kernels need, beside the record of it.
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME kernels_report
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/kernels/report.py --nvcc ${CMAKE_CUDA_COMPILER} --check
                   --generated ${PROJECT_BINARY_DIR}/codec/generated
                   --against ${PROJECT_SOURCE_DIR}/bench/results/kernels.json)
  set_tests_properties(kernels_report PROPERTIES SKIP_RETURN_CODE 77)  # another compiler than the record's
  add_test(NAME kernels_latency
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/kernels/report.py --nvcc ${CMAKE_CUDA_COMPILER} --latency
                   --generated ${PROJECT_BINARY_DIR}/codec/generated)
  # The loader's CUDA part, as it is loaded.
  add_test(NAME cuda_library COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/cuda_library_test.py
                                     $<TARGET_FILE:l3_data_cuda>)
  add_test(NAME gpu_leak COMMAND gpu_leak)
  add_test(NAME gpu_stream_order COMMAND gpu_stream_order)
  set_tests_properties(gpu_leak gpu_stream_order PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
endif()

# The tests that the emulated GPU runs too.
find_package(GTest REQUIRED)
add_gpu_program(gpu_batch_test tests/gpu_batch_test.cpp tests/gpu_batch_call_test.cpp tests/gpu_batch_hostile_test.cpp
                tests/gpu_batch_output_test.cpp tests/gpu_batch_bit_test.cpp tests/gpu_batch_token_test.cpp tests/gpu_batch_follow_test.cpp
                tests/gpu_encode_test.cpp)
target_link_libraries(gpu_batch_test PRIVATE GTest::gtest_main)
# Whole loaders, and what they do to images. Their device is linked, not loaded.
set(device ${PROJECT_SOURCE_DIR}/loader/cuda)
add_gpu_program(gpu_loader_test tests/loader_gpu_test.cpp ${device}/context.cpp ${device}/cuda_device.cpp
                ${device}/encoders.cpp ${device}/models.cpp ${device}/outputs.cpp ${device}/slot.cpp)
target_include_directories(gpu_loader_test PRIVATE ${PROJECT_SOURCE_DIR}/loader/src)
target_link_libraries(gpu_loader_test PRIVATE l3_base l3_data_writer l3_loader GTest::gtest_main)
if(L3_TESTS)
  set(vectors_folder ${PROJECT_BINARY_DIR}/tests/vectors)
  add_test(NAME gpu_batch COMMAND gpu_batch_test)
  set_tests_properties(gpu_batch PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED" RUN_SERIAL TRUE
                                            FIXTURES_REQUIRED gpu_vectors ENVIRONMENT L3_VECTORS=${vectors_folder})
endif()
