# SPDX-License-Identifier: Apache-2.0
# For Debian's arm64, with the cross compiler of Debian and its derivatives (gcc-aarch64-linux-gnu). See docs/guide/cross-compiling.md.
set(MK_CROSS_TRIPLET aarch64-linux-gnu)
set(MK_CROSS_PROCESSOR aarch64)
set(MK_CROSS_EMULATOR qemu-aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
