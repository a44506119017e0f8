# SPDX-License-Identifier: Apache-2.0
# mk_layer(NAME BELOW...): the folder src/NAME as one library that sees only the layers named after it.
# mk_cold(NAME...): these run when the server starts, not for each request: small before fast.
function(mk_layer name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.c)
  add_library(mk_${name} STATIC ${sources})
  target_include_directories(mk_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(mk_${name} PUBLIC mk_flags)
  foreach(lower IN LISTS ARGN)
    target_link_libraries(mk_${name} PUBLIC mk_${lower})
  endforeach()
endfunction()

function(mk_cold)
  foreach(name IN LISTS ARGN)
    target_compile_options(mk_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
  endforeach()
endfunction()
