# SPDX-License-Identifier: Apache-2.0
# Parts of the server that are objects of their own, monkey-NAME.so. The program loads one when a configuration needs it, so a
# server that does not need it carries neither its code nor its library. With NAME or `all` in MK_STATIC_PLUGINS it becomes a part
# of the program. Without its library the part is not built.
#
#   mk_object_library(OPTION PACKAGE)          looks for the pkg-config package, as OPTION says: AUTO, ON or OFF
#   mk_object(NAME BELOW FEATURE NEEDS LIB)    the layer src/NAME, which stands on the layer BELOW and links the target LIB, and
#                                              the object; neither if there is no such target. NEEDS names the library
#   mk_program_with(TARGET NAME...)            builds these parts into a program, as far as they exist
macro(mk_object_library option package)
  set(${option} AUTO CACHE STRING "With ${package}: AUTO (where it is there), ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  string(MAKE_C_IDENTIFIER ${package} id)
  if(${option})
    mk_library(${id} ${package})
    if(NOT ${id}_FOUND AND NOT ${option} STREQUAL "AUTO")
      message(FATAL_ERROR "${option} is ${${option}}, and pkg-config does not find ${package}")
    endif()
  endif()
endmacro()

function(mk_object name below feature needs lib)
  if(NOT TARGET ${lib})
    mk_feature(FALSE "${feature}" "${needs}")
    message(STATUS "${feature}: left out, ${needs} is not there or not wanted")
    file(REMOVE ${CMAKE_BINARY_DIR}/plugins/monkey-${name}.so) # of an earlier configure
    return()
  endif()
  mk_feature(TRUE "${feature}")
  mk_layer(${name} ${below})
  target_link_libraries(mk_${name} PUBLIC ${lib})
  add_library(object_${name} MODULE $<TARGET_OBJECTS:mk_${name}>)
  set_target_properties(object_${name} PROPERTIES PREFIX "" OUTPUT_NAME monkey-${name} SUFFIX .so LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  target_link_libraries(object_${name} PRIVATE mk_flags ${lib})
  set_property(GLOBAL APPEND PROPERTY MK_OBJECTS object_${name})
  install(TARGETS object_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/monkey)
endfunction()

function(mk_program_with target)
  foreach(name IN LISTS ARGN)
    if(TARGET mk_${name})
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:mk_${name}>)
      get_target_property(libs object_${name} LINK_LIBRARIES)
      target_link_libraries(${target} PRIVATE ${libs})
    endif()
  endforeach()
endfunction()
