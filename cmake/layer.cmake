# SPDX-License-Identifier: Apache-2.0
# mk_layer(NAME BELOW...): the folder src/NAME as one library that sees only the layers named after it.
# mk_hot(NAME FILE...): the files of a layer that every request passes are built for speed; all else is small before fast.
function(mk_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  add_library(mk_${name} STATIC ${sources})
  target_include_directories(mk_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(mk_${name} PUBLIC mk_flags)
  foreach(lower IN LISTS ARGN)
    target_link_libraries(mk_${name} PUBLIC mk_${lower})
  endforeach()
endfunction()

function(mk_hot name)
  if(NOT TARGET mk_${name}) # its library is not there
    return()
  endif()
  target_compile_options(mk_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
  foreach(file IN LISTS ARGN)
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/${name}/${file}.c PROPERTIES COMPILE_OPTIONS
      "$<$<CONFIG:Release>:-O2>;$<$<CONFIG:Release>:${MK_NO_REP}>")
  endforeach()
endfunction()
