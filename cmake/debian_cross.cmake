# Shared by the toolchain files in this folder. They use Debian's cross compilers and Debian's libraries for the target,
# which tests/cross.sh unpacks into L3_SYSROOT. Programs run under qemu-user, through a script that cross.sh writes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${L3_TRIPLET}-gcc)
set(CMAKE_CXX_COMPILER ${L3_TRIPLET}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${L3_TRIPLET})
# Headers that differ between processors, such as jconfig.h, are in a separate folder. Compilers search it only in their
# own root, so add it here.
set(CMAKE_CXX_FLAGS_INIT "-O2 ${L3_PROCESSOR_OPTIONS} -isystem ${L3_SYSROOT}/usr/include/${L3_TRIPLET}")

# Some of Debian's libraries are in /lib. The linker looks there for what other libraries need.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${L3_SYSROOT}/lib/${L3_TRIPLET}")

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES L3_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${L3_SYSROOT} /usr/${L3_TRIPLET})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${L3_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${L3_SYSROOT}/usr/lib/${L3_TRIPLET}/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR ${L3_SYSROOT}/../emulate)
