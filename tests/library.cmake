# Tests of libl3 as others get it: static and shared, built and installed. Read by CMakeLists.txt beside it.

# The layout of what cannot change any more; a build that breaks it does not compile.
add_executable(layout_test layout_test.c)
set_target_properties(layout_test PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF LINKER_LANGUAGE CXX)
target_compile_options(layout_test PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_link_libraries(layout_test PRIVATE l3_data)
add_test(NAME layout COMMAND layout_test)

# What is installed and exported is the same under sanitizers, where building it once more takes long.
if(L3_SANITIZED)
  return()
endif()

# A program that only decodes gets no encoder from a static libl3.
if(NOT BUILD_SHARED_LIBS)
  foreach(name decode_only decode_and_encode)
    add_executable(${name} decode_only.c)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
    target_link_libraries(${name} PRIVATE l3)
  endforeach()
  target_compile_definitions(decode_and_encode PRIVATE WITH_ENCODER)
  add_test(NAME decode_only COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/decode_only_test.py
                                    --decoder $<TARGET_FILE:decode_only> --encoder $<TARGET_FILE:decode_and_encode>
                                    --source ${PROJECT_SOURCE_DIR}/codec)
endif()

add_test(NAME headers COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/headers_test.sh ${PROJECT_SOURCE_DIR})

# libl3 is static in this build or shared; a build of its own in the work folder makes the other.
set(other ${CMAKE_CURRENT_BINARY_DIR}/other_library)
if(BUILD_SHARED_LIBS)
  set(other_shared OFF)
  set(static_build ${other})
  set(shared_build ${PROJECT_BINARY_DIR})
else()
  set(other_shared ON)
  set(static_build ${PROJECT_BINARY_DIR})
  set(shared_build ${other})
endif()
set(other_options -DBUILD_SHARED_LIBS=${other_shared} -DL3_TOOLS=OFF -DL3_TESTS=OFF -DL3_CUDA=OFF
                  -DL3_WERROR=${L3_WERROR} -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=")
foreach(variable CMAKE_C_COMPILER CMAKE_CXX_COMPILER CMAKE_C_FLAGS CMAKE_CXX_FLAGS CMAKE_C_COMPILER_LAUNCHER
                 CMAKE_CXX_COMPILER_LAUNCHER CMAKE_TOOLCHAIN_FILE CMAKE_PREFIX_PATH CMAKE_MAKE_PROGRAM)
  if(${variable})
    list(APPEND other_options "-D${variable}=${${variable}}")
  endif()
endforeach()
add_test(NAME other_library
         COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR} ${other} --build-noclean
                 --build-generator ${CMAKE_GENERATOR} --build-options ${other_options})
set_tests_properties(other_library PROPERTIES FIXTURES_SETUP other_library)

add_test(NAME exports COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/exports_test.py
                              --library ${shared_build}/codec/libl3.so --source ${PROJECT_SOURCE_DIR}/codec)
add_test(NAME exports_data COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/exports_test.py --name l3_data
                                   --library ${shared_build}/loader/libl3_data.so --source ${PROJECT_SOURCE_DIR}/loader)
add_test(NAME install_static COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install_test.sh static ${static_build}
                                     ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/install_static)
add_test(NAME install_shared COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/install_test.sh shared ${shared_build}
                                     ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/install_shared)
set_tests_properties(exports exports_data install_static install_shared PROPERTIES FIXTURES_REQUIRED other_library)
