# Runs COMMAND and writes its output to FILE, unless it fails.
cmake_minimum_required(VERSION 3.25)
get_filename_component(folder ${FILE} DIRECTORY)
file(MAKE_DIRECTORY ${folder})
execute_process(COMMAND ${COMMAND} OUTPUT_FILE ${FILE}.unfinished RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${COMMAND}: ${result}")
endif()
file(RENAME ${FILE}.unfinished ${FILE})
