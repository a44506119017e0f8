# SPDX-License-Identifier: Apache-2.0
# mk_layer(NAME BELOW... [FILES FILE...]): the folder src/NAME, or these files of src, as one library that sees only the layers
# named after it.
# mk_optional_layer(NAME OPTION PACKAGE FEATURE BELOW... [FILES FILE...]): the same for a layer that needs the pkg-config package. OPTION is AUTO
# (built where the package is found), ON or OFF. Programs and libmonkey contain the layer if it is built.
# mk_either(NAME IS_WANTED FILE [FILE...]): these files of the layer if IS_WANTED, else FILE_none.c in place of the first one.
# mk_hot(NAME FILE...): the files of a layer that every request passes are built for speed; all else is small before fast.
function(mk_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "FILES")
  if(layer_FILES)
    list(TRANSFORM layer_FILES PREPEND ${CMAKE_SOURCE_DIR}/src/ OUTPUT_VARIABLE sources)
  else()
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  endif()
  add_library(mk_${name} STATIC ${sources})
  target_include_directories(mk_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(mk_${name} PUBLIC mk_flags)
  foreach(lower IN LISTS layer_UNPARSED_ARGUMENTS)
    target_link_libraries(mk_${name} PUBLIC mk_${lower})
  endforeach()
endfunction()

define_property(GLOBAL PROPERTY MK_OPTIONAL_LAYERS BRIEF_DOCS "those that are built" FULL_DOCS "-")

function(mk_optional_layer name option package feature)
  set(${option} AUTO CACHE STRING "${feature} by ${package}: AUTO (if the library is found), ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  string(MAKE_C_IDENTIFIER ${package} id)
  if(${option})
    mk_library(${id} ${package})
    if(NOT TARGET PkgConfig::${id} AND NOT ${option} STREQUAL "AUTO")
      message(FATAL_ERROR "${option} is ${${option}}, and pkg-config does not find ${package}")
    endif()
  endif()
  if(NOT TARGET PkgConfig::${id})
    mk_feature(FALSE "${feature}" ${package})
    message(STATUS "${feature}: left out, ${package} is not there or not wanted")
    return()
  endif()
  mk_feature(TRUE "${feature}")
  mk_layer(${name} ${ARGN})
  target_link_libraries(mk_${name} PUBLIC PkgConfig::${id})
  set_property(GLOBAL APPEND PROPERTY MK_OPTIONAL_LAYERS ${name})
endfunction()

function(mk_either name is_wanted first)
  get_target_property(sources mk_${name} SOURCES)
  if(is_wanted)
    list(FILTER sources EXCLUDE REGEX "/${first}_none\\.c$")
  else()
    foreach(file IN LISTS first ARGN)
      list(FILTER sources EXCLUDE REGEX "/${file}\\.c$")
    endforeach()
  endif()
  set_target_properties(mk_${name} PROPERTIES SOURCES "${sources}")
endfunction()

# mk_link_layers(TARGET LAYER...): makes the objects of the layers, and the libraries that they need, a part of the target.
function(mk_link_layers target)
  foreach(layer IN LISTS ARGN)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:mk_${layer}>)
    get_target_property(libraries mk_${layer} LINK_LIBRARIES)
    list(FILTER libraries EXCLUDE REGEX "^mk_")
    target_link_libraries(${target} PRIVATE ${libraries})
  endforeach()
endfunction()

function(mk_hot name)
  if(NOT TARGET mk_${name} OR MK_OPTIMIZE STREQUAL "size") # its library is not there, or nothing is built for speed
    return()
  endif()
  target_compile_options(mk_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
  foreach(file IN LISTS ARGN)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/${name}/${file}.c PROPERTIES COMPILE_OPTIONS
      "$<$<CONFIG:Release>:-O2>;$<$<CONFIG:Release>:${MK_NO_REP}>")
  endforeach()
endfunction()
