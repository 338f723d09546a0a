# Sets L3_COMMIT, for `l3 --version`: `git archive` writes it into commit.txt; in a clone, git knows it.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt L3_COMMIT LIMIT_COUNT 1)
if(L3_COMMIT MATCHES Format)
  set(L3_COMMIT unknown)
  find_package(Git QUIET)
  if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
    execute_process(
      COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse HEAD
      OUTPUT_VARIABLE found
      OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(found)
      set(L3_COMMIT ${found})
    endif()
  endif()
endif()
