# Tests of far stores: their parts, and readers and writers with servers on this machine, some of them slow, broken or
# hostile. Read by CMakeLists.txt beside it. Tests that need a server are slow ones.
set(far_tests)
if(NOT TARGET l3_data_net)
  return()
endif()

add_executable(net_test net_test.cpp net_s3_test.cpp)
add_executable(redis_test redis_test.cpp)
foreach(name net redis)
  target_link_libraries(${name}_test PRIVATE l3_data_net_objects l3_base l3 GTest::gtest_main l3_warnings)
  add_test(NAME ${name} COMMAND ${name}_test)
endforeach()

# Programs that use a store without a loader.
add_executable(store_probe store_probe.cpp)
target_include_directories(store_probe PRIVATE ${PROJECT_SOURCE_DIR}/loader/include
                                               $<TARGET_PROPERTY:l3,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(store_probe PRIVATE l3_base Threads::Threads ${CMAKE_DL_LIBS} l3_warnings)
add_dependencies(store_probe l3_data_net)
add_executable(redis_probe redis_probe.cpp)
target_link_libraries(redis_probe PRIVATE l3_data_net_objects l3_base l3 l3_warnings)
# A link with delay and faults.
add_executable(slow_link slow_link.cpp slow_link_relay.cpp slow_link_wire.cpp)
target_compile_options(slow_link PRIVATE ${L3_HOT_OPTIONS})
target_link_libraries(slow_link PRIVATE l3_warnings)

# The Python of the package's environment has more servers.
set(far_python ${Python3_EXECUTABLE})
if(L3_PYTHON AND Python_EXECUTABLE)
  set(far_python ${Python_EXECUTABLE})
endif()
function(add_far_test name)
  add_test(NAME ${name} COMMAND ${far_python} ${CMAKE_CURRENT_SOURCE_DIR}/${name}_test.py ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
  set(far_tests ${far_tests} ${name} PARENT_SCOPE)
endfunction()
add_far_test(slow_link --link $<TARGET_FILE:slow_link>)
add_far_test(far_http --probe $<TARGET_FILE:store_probe>)
add_far_test(far_s3 --probe $<TARGET_FILE:store_probe>)
add_far_test(far_redis --probe $<TARGET_FILE:redis_probe>)
add_far_test(far_redis_hostile --probe $<TARGET_FILE:redis_probe>)
if(L3_TOOLS)
  add_far_test(command_far --l3 $<TARGET_FILE:l3_command>)
  # The address sanitizer's dlopen does not look at the command's RUNPATH.
  set_tests_properties(command_far PROPERTIES ENVIRONMENT LD_LIBRARY_PATH=$<TARGET_FILE_DIR:l3_data_net>)
endif()
# Epochs near and far, with faults. It imports the package of this build, and measures, so nothing may run beside it.
if(L3_TOOLS AND L3_PYTHON)
  add_far_test(far --l3 $<TARGET_FILE:l3_command> --link $<TARGET_FILE:slow_link>)
  # A cache on the nodes of a job.
  add_far_test(far_cache --l3 $<TARGET_FILE:l3_command> --link $<TARGET_FILE:slow_link>)
  set_tests_properties(far far_cache PROPERTIES RUN_SERIAL TRUE
                                                ENVIRONMENT PYTHONPATH=$<TARGET_FILE_DIR:l3_python>/..)
endif()
