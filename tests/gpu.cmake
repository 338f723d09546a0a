# The batch decoder against libl3, on the emulated GPU. Read by CMakeLists.txt beside it; gpu_programs.cmake has the same
# tests for a real one.
set(gpu_sources gpu_batch_test.cpp gpu_batch_call_test.cpp gpu_batch_hostile_test.cpp gpu_batch_output_test.cpp
                gpu_batch_bit_test.cpp gpu_batch_token_test.cpp gpu_batch_follow_test.cpp gpu_encode_test.cpp)

set(vectors_folder ${CMAKE_CURRENT_BINARY_DIR}/vectors)
if(TARGET emulated_gpu OR TARGET l3_cuda)
  add_test(NAME gpu_vectors COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/spec/vectors/build.py ${vectors_folder})
  set_tests_properties(gpu_vectors PROPERTIES FIXTURES_SETUP gpu_vectors COST 600)
endif()

if(TARGET emulated_gpu)
  set(emulated_sources emulated_kernels.cpp emulated_bit_kernels.cpp emulated_dense_kernels.cpp emulated_encode_kernels.cpp
                       emulated_follow_kernels.cpp emulated_rows_kernels.cpp emulated_token_kernels.cpp)
  add_library(emulated_kernels OBJECT ${emulated_sources})
  target_include_directories(
    emulated_kernels
    PUBLIC ${PROJECT_SOURCE_DIR}/kernels/include
    PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/base/include ${PROJECT_BINARY_DIR}/codec/generated)
  add_dependencies(emulated_kernels l3_default_models)
  target_compile_options(emulated_kernels PRIVATE ${L3_HOT_OPTIONS} ${L3_LESS_SANITIZED})
  target_link_libraries(emulated_kernels PRIVATE emulated_gpu l3_internals l3_warnings)
  # Kernels use their shared memory for this and that, and call parameters as they like.
  set_source_files_properties(${emulated_sources} PROPERTIES COMPILE_OPTIONS "-fno-strict-aliasing;-Wno-shadow")

  add_executable(gpu_emulated_test ${gpu_sources})
  target_include_directories(gpu_emulated_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(gpu_emulated_test PRIVATE emulated_kernels emulated_gpu l3_internals GTest::gtest_main
                                                  Threads::Threads l3_warnings)
  add_test(NAME gpu_emulated COMMAND gpu_emulated_test)
  set_tests_properties(gpu_emulated PROPERTIES FIXTURES_REQUIRED gpu_vectors TIMEOUT 3600 COST 500
                                               ENVIRONMENT L3_VECTORS=${vectors_folder})

  # Parts of models, as warps read them.
  add_executable(gpu_model_parts_test gpu_model_parts_test.cpp)
  target_include_directories(gpu_model_parts_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/base/include)
  target_link_libraries(gpu_model_parts_test PRIVATE emulated_gpu l3_internals GTest::gtest_main Threads::Threads
                                                     l3_warnings)
  add_test(NAME gpu_model_parts COMMAND gpu_model_parts_test)

  # How often lanes look up words of the same bank: for kernels/model.py.
  add_executable(bank_conflicts bank_conflicts.cpp)
  target_link_libraries(bank_conflicts PRIVATE emulated_kernels emulated_gpu l3_internals Threads::Threads l3_warnings)
  add_test(NAME gpu_bank_conflicts COMMAND bank_conflicts)
  set_tests_properties(gpu_bank_conflicts PROPERTIES PASS_REGULAR_EXPRESSION "drawn: equal.*2 bytes.*8 bytes")

  # What `l3 bench` measures a GPU with.
  if(L3_TOOLS)
    add_executable(bench_gpu_test bench_gpu_test.cpp ${PROJECT_SOURCE_DIR}/bench/gpu.cpp)
    target_include_directories(bench_gpu_test PRIVATE ${PROJECT_SOURCE_DIR}/bench/include)
    target_link_libraries(bench_gpu_test PRIVATE emulated_kernels emulated_gpu l3_bridge l3::formats l3_internals
                                                 GTest::gtest_main Threads::Threads l3_warnings)
    add_test(NAME bench_gpu COMMAND bench_gpu_test)
  endif()

  # The loader's device on the same.
  set(folder ${PROJECT_SOURCE_DIR}/loader/cuda)
  add_library(emulated_cuda_device OBJECT ${folder}/context.cpp ${folder}/cuda_device.cpp ${folder}/encoders.cpp
                                          ${folder}/models.cpp ${folder}/outputs.cpp ${folder}/slot.cpp)
  target_include_directories(
    emulated_cuda_device
    PUBLIC ${PROJECT_SOURCE_DIR}/kernels/include ${PROJECT_SOURCE_DIR}/loader/include
           ${PROJECT_SOURCE_DIR}/base/include)
  target_link_libraries(emulated_cuda_device PRIVATE emulated_gpu l3 l3_warnings)

  add_executable(loader_device_test loader_device_test.cpp loader_device_order_test.cpp)
  target_link_libraries(
    loader_device_test PRIVATE emulated_cuda_device emulated_kernels emulated_gpu l3_loader l3_internals
                               GTest::gtest_main Threads::Threads l3_warnings)
  add_test(NAME loader_device COMMAND loader_device_test)
  set_tests_properties(loader_device PROPERTIES FIXTURES_REQUIRED gpu_vectors ENVIRONMENT L3_VECTORS=${vectors_folder})

  # The extension of nvImageCodec, called as nvImageCodec does.
  if(TARGET l3_nvimgcodec)
    get_target_property(headers l3_nvimgcodec L3_HEADERS)
    set(folder ${PROJECT_SOURCE_DIR}/extensions/nvimgcodec/src)
    add_executable(nvimgcodec_cuda_test nvimgcodec_cuda_test.cpp ${folder}/cuda_decoder.cpp ${folder}/file.cpp
                                        ${folder}/log.cpp ${folder}/pixels.cpp ${folder}/request.cpp
                                        ${folder}/stream.cpp ${folder}/wish.cpp)
    target_include_directories(nvimgcodec_cuda_test PRIVATE ${folder} ${PROJECT_SOURCE_DIR}/kernels/include)
    target_include_directories(nvimgcodec_cuda_test SYSTEM PRIVATE ${headers})
    target_link_libraries(nvimgcodec_cuda_test PRIVATE emulated_kernels emulated_gpu l3_base l3_internals
                                                       GTest::gtest_main Threads::Threads l3_warnings)
    add_test(NAME nvimgcodec_cuda COMMAND nvimgcodec_cuda_test)
  endif()

  # Whole loaders over it.
  add_executable(loader_gpu_test loader_gpu_test.cpp)
  target_include_directories(loader_gpu_test PRIVATE ${PROJECT_SOURCE_DIR}/loader/src)
  target_link_libraries(loader_gpu_test PRIVATE emulated_cuda_device emulated_kernels emulated_gpu l3_base
                                                l3_data_writer l3_loader
                                                l3_internals GTest::gtest_main Threads::Threads l3_warnings)
  add_test(NAME loader_gpu COMMAND loader_gpu_test)
  # The same values whatever the processor.
  add_test(NAME loader_gpu_portable COMMAND loader_gpu_test --gtest_filter=*ChangeImages*)
  set_tests_properties(loader_gpu_portable PROPERTIES ENVIRONMENT L3_CPU=portable)

  # What the bundle for GPUs runs, on the emulated one.
  add_executable(gpu_vectors_emulated gpu_vectors.cpp)
  target_link_libraries(gpu_vectors_emulated PRIVATE emulated_kernels emulated_gpu l3_internals Threads::Threads
                                                     l3_warnings)
  add_test(NAME gpu_vectors_emulated COMMAND gpu_vectors_emulated --quick ${vectors_folder}/valid
                                             ${vectors_folder}/invalid)
  set_tests_properties(gpu_vectors_emulated PROPERTIES FIXTURES_REQUIRED gpu_vectors)

  # The same with the kernels' PTX on another executor: `./run gpu-independent` builds these.
  add_library(independent OBJECT EXCLUDE_FROM_ALL independent/independent.cpp)
  target_include_directories(independent PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/kernels/include)
  target_link_libraries(independent PRIVATE emulated_gpu l3_internals l3_warnings)
  add_executable(independent_vectors EXCLUDE_FROM_ALL gpu_vectors.cpp)
  add_executable(independent_test EXCLUDE_FROM_ALL ${gpu_sources} loader_device_test.cpp loader_gpu_test.cpp)
  foreach(program independent_vectors independent_test)
    target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/loader/src)
    target_link_libraries(${program} PRIVATE independent emulated_cuda_device emulated_kernels emulated_gpu l3_base
                                             l3_data_writer l3_loader l3_internals Threads::Threads ${CMAKE_DL_LIBS}
                                             l3_warnings)
    set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON)  # it looks up the names of kernels
  endforeach()
  target_link_libraries(independent_test PRIVATE GTest::gtest_main)
endif()
