# IBM Z: the big-endian machine that Debian builds everything for.
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(L3_TRIPLET s390x-linux-gnu)
# The first one with vector registers: lanes then lie in them, most significant byte first.
set(L3_PROCESSOR_OPTIONS -march=z13)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
