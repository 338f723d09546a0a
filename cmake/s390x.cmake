# IBM Z: the big-endian architecture for which Debian builds every package.
set(CMAKE_SYSTEM_PROCESSOR s390x)
set(L3_TRIPLET s390x-linux-gnu)
# z13 is the first with vector registers. With them, tests cover lanes that are stored most significant byte first.
set(L3_PROCESSOR_OPTIONS -march=z13)
include(${CMAKE_CURRENT_LIST_DIR}/debian_cross.cmake)
