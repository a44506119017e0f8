# SPDX-License-Identifier: Apache-2.0
# Regular expressions by PCRE2: src/regex, the one object that knows it. It is loaded when a configuration has a regular
# expression; with `regex` or `all` in MK_STATIC_PLUGINS it becomes a part of the program. Without it, or with
# -DMK_PCRE2=OFF, a regular expression is a configuration error, and everything else works.
set(MK_PCRE2 AUTO CACHE STRING "Regular expressions by PCRE2: ON, OFF, or AUTO if it is there")
set_property(CACHE MK_PCRE2 PROPERTY STRINGS AUTO ON OFF)

# mk_regex(): the layer `regex` and the object that is made of it.
function(mk_regex)
  if(MK_PCRE2)
    mk_library(pcre2 libpcre2-8)
  endif()
  if(NOT MK_PCRE2 OR NOT pcre2_FOUND)
    if(MK_PCRE2 AND NOT MK_PCRE2 STREQUAL "AUTO")
      message(FATAL_ERROR "MK_PCRE2 is ${MK_PCRE2}, and pkg-config does not find libpcre2-8")
    endif()
    mk_feature(FALSE "regular expressions" libpcre2-8)
    message(STATUS "regular expressions: left out, libpcre2-8 is not there or not wanted")
    file(REMOVE ${CMAKE_BINARY_DIR}/plugins/monkey-regex.so) # of an earlier configure
    return()
  endif()
  mk_feature(TRUE "regular expressions")
  mk_layer(regex os)
  mk_hot(regex pcre2)
  target_link_libraries(mk_regex PUBLIC PkgConfig::pcre2)
  add_library(object_regex MODULE $<TARGET_OBJECTS:mk_regex>)
  set_target_properties(object_regex PROPERTIES PREFIX "" OUTPUT_NAME monkey-regex SUFFIX .so LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  target_link_libraries(object_regex PRIVATE mk_flags PkgConfig::pcre2)
  set_property(GLOBAL APPEND PROPERTY MK_OBJECTS object_regex)
  install(TARGETS object_regex LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/monkey)
endfunction()

# mk_program_with_regex(TARGET): has it built in.
function(mk_program_with_regex target)
  if(TARGET mk_regex)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:mk_regex>)
    target_link_libraries(${target} PRIVATE PkgConfig::pcre2)
  endif()
endfunction()
