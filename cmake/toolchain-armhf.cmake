# SPDX-License-Identifier: Apache-2.0
# For Debian's armhf, with the cross compiler of Debian and its derivatives (gcc-arm-linux-gnueabihf). See docs/guide/cross-compiling.md.
set(MK_CROSS_TRIPLET arm-linux-gnueabihf)
set(MK_CROSS_PROCESSOR arm)
set(MK_CROSS_EMULATOR qemu-arm)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
