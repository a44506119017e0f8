# SPDX-License-Identifier: Apache-2.0
# mk_embeddable(TARGET PLUGINS...): the library TARGET.so out of the objects of the server, without its processes, and with
# these plugins. What a library must not do is left out: src/lib/instead has files that take the places of others.
function(mk_embeddable target)
  file(GLOB instead CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/lib/instead/*.c)
  add_library(${target} SHARED ${instead})
  mk_built_in(${target} ${ARGN})
  set(replaced "")
  foreach(file IN LISTS instead)
    get_filename_component(stem ${file} NAME_WE)
    list(APPEND replaced ${stem})
  endforeach()
  list(JOIN replaced "|" replaced)
  foreach(layer base os http conf router net web proto setup worker lib)
    target_sources(${target} PRIVATE $<FILTER:$<TARGET_OBJECTS:mk_${layer}>,EXCLUDE,/\(${replaced}\)\\.c>)
  endforeach()
  target_link_libraries(${target} PRIVATE mk_flags ${CMAKE_DL_LIBS})
  # Calls of our own functions are ours, whatever the program around us has under the same names.
  target_link_options(${target} PRIVATE LINKER:-Bsymbolic LINKER:--version-script=${CMAKE_SOURCE_DIR}/src/lib/libmonkey.map)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME monkey VERSION 1.0.0 SOVERSION 1
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/lib/libmonkey.map LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()
