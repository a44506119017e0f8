# SPDX-License-Identifier: Apache-2.0
# Libraries that the server can do without, and the features that need them.
#
#   mk_library(PREFIX PACKAGE...)       looks for these pkg-config packages; sets PREFIX_FOUND and makes PkgConfig::PREFIX
#   mk_feature(IS_IN TITLE [PACKAGE])   records the feature for `monkey -V` and the last line of `make run`
#   mk_features_source(LAYER)           adds the two lists to a layer, as server/build_info.h declares them
#
# Every configure looks for the libraries again, and the build runs configure when a package comes or goes: CMake's own
# cache would keep the first answer for good.
set(MK_LIBRARIES AUTO CACHE STRING "AUTO: use the libraries that this machine has; OFF: libc alone")
set_property(CACHE MK_LIBRARIES PROPERTY STRINGS AUTO OFF)
define_property(GLOBAL PROPERTY MK_WITH BRIEF_DOCS "features of this build" FULL_DOCS "-")
define_property(GLOBAL PROPERTY MK_WITHOUT BRIEF_DOCS "features that this build lacks" FULL_DOCS "-")

# Forgets a cached path that leads nowhere, so that the search starts again. A path that the user gave stays while it is there.
function(mk_forget_missing)
  foreach(name IN LISTS ARGN)
    if(DEFINED CACHE{${name}} AND NOT EXISTS "$CACHE{${name}}")
      unset(${name} CACHE)
    endif()
  endforeach()
endfunction()

mk_forget_missing(PKG_CONFIG_EXECUTABLE)
find_package(PkgConfig QUIET)

function(mk_forget_library prefix)
  get_cmake_property(names CACHE_VARIABLES)
  list(FILTER names INCLUDE REGEX "^(__pkg_config_checked_${prefix}|pkgcfg_lib_${prefix}_.+|${prefix}_FOUND)$")
  foreach(name IN LISTS names)
    unset(${name} CACHE)
  endforeach()
endfunction()

macro(mk_library prefix)
  mk_forget_library(${prefix})
  if(PkgConfig_FOUND AND MK_LIBRARIES)
    pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${ARGN})
    set_property(GLOBAL PROPERTY MK_PACKAGES_OF_${prefix} ${ARGN})
  endif()
endmacro()

# A folder of pkg-config changes when a package comes or goes. Where it is not there yet, the folder above it does.
function(mk_watch_folder folder)
  while(NOT EXISTS "${folder}")
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}")
endfunction()

function(mk_watch_libraries)
  set(folders /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pkgconfig /usr/lib64/pkgconfig /usr/lib/pkgconfig)
  if(PkgConfig_FOUND)
    execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --variable pc_path pkg-config
      OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(REPLACE ":" ";" folders "${path}:$ENV{PKG_CONFIG_PATH}:$ENV{PKG_CONFIG_LIBDIR}")
  endif()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    if(IS_ABSOLUTE "${folder}")
      mk_watch_folder("${folder}")
    endif()
  endforeach()
endfunction()
if(MK_LIBRARIES)
  mk_watch_libraries()
endif()

function(mk_feature is_in title)
  if(is_in)
    set_property(GLOBAL APPEND PROPERTY MK_WITH ${title})
    return()
  endif()
  if(ARGC GREATER 2)
    string(APPEND title " (${ARGV2})")
  endif()
  set_property(GLOBAL APPEND PROPERTY MK_WITHOUT ${title})
endfunction()

function(mk_features_source layer)
  foreach(kind WITH WITHOUT)
    get_property(titles GLOBAL PROPERTY MK_${kind})
    list(REVERSE titles) # src after plugins: what most users look for comes first
    list(JOIN titles ", " ${kind})
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/features.c CONTENT "/* SPDX-License-Identifier: Apache-2.0 */
/* Made by cmake/features.cmake: what needs a library, and whether this program has it. */
#include \"server/build_info.h\"

const char mk_features_with[] = \"@WITH@\";
const char mk_features_without[] = \"@WITHOUT@\";
" @ONLY)
  set(summary "")
  foreach(kind WITH WITHOUT)
    if(NOT "${${kind}}" STREQUAL "")
      string(TOLOWER ${kind} word)
      list(APPEND summary "${word} ${${kind}}")
    endif()
  endforeach()
  list(JOIN summary "; " summary)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/features.txt CONTENT "@summary@\n" @ONLY)
  target_sources(mk_${layer} PRIVATE ${CMAKE_BINARY_DIR}/features.c)
endfunction()
