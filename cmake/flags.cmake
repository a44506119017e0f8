# SPDX-License-Identifier: Apache-2.0
# Warnings, hardening and sanitizers, as one interface library that every target of ours links.
include(CheckCSourceCompiles)
include(CheckIncludeFile)
include(CheckIPOSupported)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(MK_OPTIMIZE speed CACHE STRING "What optimized builds are compiled for: speed, or size")
set_property(CACHE MK_OPTIMIZE PROPERTY STRINGS speed size)
# Options for code that is optimized for size, without jump tables, and for code that every request executes.
set(MK_SMALL_CODE -Os -fno-jump-tables)
set(MK_FAST_CODE -O2 -fjump-tables)
include(CheckCCompilerFlag)
check_c_compiler_flag(-Oz MK_KNOWS_OZ) # gcc 12 and clang
if(MK_KNOWS_OZ)
  set(MK_SMALL_CODE -Oz -fno-jump-tables)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
if(MK_OPTIMIZE STREQUAL "size")
  list(JOIN MK_SMALL_CODE " " CMAKE_C_FLAGS_RELEASE)
  string(APPEND CMAKE_C_FLAGS_RELEASE " -DNDEBUG")
endif()

add_library(mk_flags INTERFACE)
target_compile_definitions(mk_flags INTERFACE _GNU_SOURCE MK_VERSION="${PROJECT_VERSION}")
if(NOT MK_KEY_HELP)
  target_compile_definitions(mk_flags INTERFACE MK_NO_HELP)
endif()
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
  # Files above 2 GB, and dates after January 2038.
  target_compile_definitions(mk_flags INTERFACE _FILE_OFFSET_BITS=64 _TIME_BITS=64)
endif()
include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ features.h MK_IS_GLIBC)
# Headers that only some C libraries have.
check_include_file(execinfo.h MK_HAS_EXECINFO)
if(NOT MK_HAS_EXECINFO)
  check_c_source_compiles("#include <unwind.h>
    static _Unwind_Reason_Code step(struct _Unwind_Context *c, void *x) { (void)c; (void)x; return _URC_END_OF_STACK; }
    int main(void) { return (int)_Unwind_Backtrace(step, 0); }" MK_HAS_UNWINDER)
  if(MK_HAS_UNWINDER)
    target_include_directories(mk_flags INTERFACE ${CMAKE_SOURCE_DIR}/cmake/without/execinfo)
  else()
    target_include_directories(mk_flags INTERFACE ${CMAKE_SOURCE_DIR}/cmake/without/unwinder)
  endif()
endif()
target_compile_options(mk_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wswitch-enum -Wnull-dereference
  -fno-common -fvisibility=hidden)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(mk_flags INTERFACE -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wjump-misses-init)
endif()
if(MK_WERROR)
  target_compile_options(mk_flags INTERFACE -Werror)
endif()
# Frames touch each page of theirs, so that none of them jumps over the guard below a stack. Clang lacks it on some processors.
include(CheckCCompilerFlag)
set(CMAKE_REQUIRED_FLAGS -Werror)
check_c_compiler_flag(-fstack-clash-protection MK_KNOWS_STACK_CLASH)
unset(CMAKE_REQUIRED_FLAGS)
# Without threads there is one stack, and the kernel keeps a megabyte below it free.
if(MK_KNOWS_STACK_CLASH AND (MK_THREADS OR NOT MK_OPTIMIZE STREQUAL "size"))
  target_compile_options(mk_flags INTERFACE -fstack-clash-protection)
endif()
# A crash is reported with the calls that led to it, if the C library or the compiler's library has an unwinder.
if(MK_UNWIND_TABLES AND (MK_HAS_EXECINFO OR MK_HAS_UNWINDER))
  target_compile_options(mk_flags INTERFACE -fasynchronous-unwind-tables)
else()
  target_compile_options(mk_flags INTERFACE -fno-asynchronous-unwind-tables -fno-unwind-tables)
endif()
if(MK_HARDEN)
  # The strong variant also protects functions with other arrays, or with variables whose address is used: 13 KB in `tiny`.
  set(protector -fstack-protector-strong)
  if(MK_OPTIMIZE STREQUAL "size")
    set(protector -fstack-protector)
  endif()
  target_compile_options(mk_flags INTERFACE ${protector} -fno-strict-aliasing
    $<$<AND:$<NOT:$<BOOL:${MK_SANITIZE}>>,$<NOT:$<CONFIG:Debug>>>:-D_FORTIFY_SOURCE=2>)
  target_link_options(mk_flags INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack)
  if(CMAKE_EXE_LINKER_FLAGS MATCHES "-static( |$)" AND NOT MK_IS_GLIBC)
    target_link_options(mk_flags INTERFACE LINKER:-z,norelro) # musl protects only what it relocates; up to 8 KB of padding
  endif()
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES C)
endif()
if(MK_SANITIZE)
  target_link_options(mk_flags INTERFACE -fsanitize=address,undefined)
  # The places of all checks, for the messages, are 8 MB of data that each start relocates. ASan reports a trap with its stack.
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT MK_SANITIZE_MESSAGES)
    set(traps -fsanitize-undefined-trap-on-error)
    target_link_options(mk_flags INTERFACE -fno-sanitize=undefined) # libubsan is not needed
  endif()
  target_compile_options(mk_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all ${traps}
    -fno-omit-frame-pointer -Wno-null-dereference)
  # Tests are hundreds of programs, and gold links them in a third of the time. It warns about every object of clang.
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=gold)
    check_c_source_compiles("int main(void) { return 0; }" MK_HAS_GOLD)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    if(MK_HAS_GOLD)
      target_link_options(mk_flags INTERFACE -fuse-ld=gold)
    endif()
  endif()
endif()
if(MK_COVERAGE)
  target_compile_options(mk_flags INTERFACE --coverage)
  target_link_options(mk_flags INTERFACE --coverage)
endif()
if(MK_FUZZ)
  target_compile_options(mk_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug") # who runs the program need not know where it was built
  target_compile_options(mk_flags INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=${CMAKE_BINARY_DIR}/=)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT MK_FUZZ)
  check_ipo_supported(RESULT MK_LTO OUTPUT MK_LTO_WHY LANGUAGES C)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${MK_LTO})
  if((MK_OPTIMIZE STREQUAL "size" OR MK_SMALL_LIBC) AND MK_LTO AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # In `tiny` and `std`, one partition is 4 KB smaller, and linked by one processor. What turns out to be unreachable
    # only then, such as the code around an absent module, is dropped by the linker if it has a section of its own.
    target_link_options(mk_flags INTERFACE -flto-partition=one -ffunction-sections -fdata-sections)
  endif()
  if(MK_OPTIMIZE STREQUAL "size")
    # Segments share pages: read-only data is in the segment of the code.
    target_link_options(mk_flags INTERFACE LINKER:-z,noseparate-code)
  endif()
  # Arrays without the alignment that speeds up vector loops.
  check_c_compiler_flag(-malign-data=abi MK_KNOWS_ALIGN_DATA)
  target_compile_options(mk_flags INTERFACE $<$<BOOL:${MK_KNOWS_ALIGN_DATA}>:-malign-data=abi>)
  # Half of the relocations are gone when they are packed.
  target_compile_options(mk_flags INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(mk_flags INTERFACE LINKER:--gc-sections)
  # All calls of libc are bound at the start, so they need no stubs; padding in front of functions and loops costs 4 KB
  # and saves no time that we could measure: docs/decisions/0017-program-size.md.
  if(NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-static") # which has no stubs, and its direct calls are shorter
    target_compile_options(mk_flags INTERFACE -fno-plt)
  endif()
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_compile_options(mk_flags INTERFACE -fno-align-functions -fno-align-loops -fno-align-jumps -fno-align-labels)
  endif()
  include(CheckCSourceCompiles)
  # `rep stos` over a few hundred bytes takes longer than a call of memset.
  include(CheckCCompilerFlag)
  check_c_compiler_flag(-mstringop-strategy=libcall MK_KNOWS_STRINGOP)
  if(MK_KNOWS_STRINGOP)
    set(MK_NO_REP -mstringop-strategy=libcall)
    list(APPEND MK_FAST_CODE ${MK_NO_REP})
  endif()
  # A linker that cannot do it for this processor ignores it, and says so.
  set(CMAKE_REQUIRED_LINK_OPTIONS LINKER:-z,pack-relative-relocs)
  check_c_source_compiles("int main(void) { return 0; }" MK_PACKS_RELOCATIONS FAIL_REGEX "relocs ignored|unknown -z")
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  # The libc must be able to unpack them: glibc since 2.36.
  check_c_source_compiles("
    #include <features.h>
    #if !defined __GLIBC__ || !__GLIBC_PREREQ(2, 36)
    #error
    #endif
    int main(void) { return 0; }" MK_UNPACKS_RELOCATIONS)
  if(MK_PACKS_RELOCATIONS AND MK_UNPACKS_RELOCATIONS)
    target_link_options(mk_flags INTERFACE LINKER:-z,pack-relative-relocs)
  endif()
endif()
