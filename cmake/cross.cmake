# SPDX-License-Identifier: Apache-2.0
# What the toolchain files have in common: the compiler MK_CROSS_TRIPLET-gcc, whose libraries and headers Debian keeps in
# /usr/MK_CROSS_TRIPLET. Further libraries for the target, such as cmocka or OpenSSL, are looked for in MK_CROSS_LIBRARIES
# alone, a folder with what its packages install: what this machine has for itself is never linked.
# Where qemu-user is there, CTest runs the programs of the target with it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${MK_CROSS_PROCESSOR})
set(CMAKE_C_COMPILER ${MK_CROSS_TRIPLET}-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE ${MK_CROSS_TRIPLET})

set(MK_CROSS_LIBRARIES "" CACHE PATH "Where further libraries for the target were unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MK_CROSS_LIBRARIES)
if(MK_CROSS_LIBRARIES)
  # Debian keeps there what differs between processors, such as openssl/opensslconf.h.
  set(CMAKE_C_FLAGS_INIT "-isystem ${MK_CROSS_LIBRARIES}/usr/include/${MK_CROSS_TRIPLET}")
endif()
set(CMAKE_FIND_ROOT_PATH ${MK_CROSS_LIBRARIES} /usr/${MK_CROSS_TRIPLET})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_LIBDIR} "${MK_CROSS_LIBRARIES}/usr/lib/${MK_CROSS_TRIPLET}/pkgconfig:${MK_CROSS_LIBRARIES}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${MK_CROSS_LIBRARIES}")

find_program(MK_CROSS_QEMU ${MK_CROSS_EMULATOR})
if(MK_CROSS_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${MK_CROSS_QEMU} -L /usr/${MK_CROSS_TRIPLET})
  if(MK_CROSS_LIBRARIES)
    list(APPEND CMAKE_CROSSCOMPILING_EMULATOR
      -E LD_LIBRARY_PATH=${MK_CROSS_LIBRARIES}/usr/lib/${MK_CROSS_TRIPLET}:${MK_CROSS_LIBRARIES}/lib/${MK_CROSS_TRIPLET})
  endif()
endif()
