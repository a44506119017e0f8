# SPDX-License-Identifier: Apache-2.0
# mk_plugin(NAME [COLD] [NEEDS PKG...] [CALLS PLUGIN...] [LIBS LIB...] [SOURCES FILE...]): the plugin of the folder that calls it, made
# of all its C files, or of SOURCES. They see include/monkey alone. NEEDS are pkg-config names: without them the plugin is left out, with a message. CALLS are
# plugins whose functions it calls: those in its member `needs`. It is built with its name (or `all`) in MK_PLUGINS. With its name
# (or `all`) in MK_PLUGINS_STATIC it becomes a part
# of the program, else an object to load, monkey-NAME.so. COLD: it is built for size, because few requests call it, or what it
# waits for takes longer.
#
# mk_inner_plugin(NAME OPTION [LAYER...]): a plugin that is a part of the program and of libmonkey, unless OPTION is OFF, because it
# uses layers that plugins do not see. It consists of these layers, or is in one that another inner plugin names.
set(MK_PLUGINS all CACHE STRING "Plugins to build: names, or `all`")
set(MK_PLUGINS_STATIC "" CACHE STRING "Plugins built into the program: names, or `all`")
set(MK_PLUGIN_DIR ${CMAKE_INSTALL_FULL_LIBDIR}/monkey)
file(RELATIVE_PATH MK_PLUGIN_DIR_FROM_PROGRAM ${CMAKE_INSTALL_FULL_BINDIR} ${MK_PLUGIN_DIR})
file(WRITE ${CMAKE_BINARY_DIR}/plugins/build-tree "The programs of this folder's parent load these objects.\n")
define_property(GLOBAL PROPERTY MK_ALL_PLUGINS BRIEF_DOCS "all that can be built here" FULL_DOCS "-")
define_property(GLOBAL PROPERTY MK_OBJECTS BRIEF_DOCS "targets that the program loads or starts" FULL_DOCS "-")
define_property(GLOBAL PROPERTY MK_INNER_PLUGINS BRIEF_DOCS "those that consist of layers" FULL_DOCS "-")
define_property(GLOBAL PROPERTY MK_BUILT_IN BRIEF_DOCS "those of MK_PLUGINS_STATIC" FULL_DOCS "-")

# Tests have each plugin twice, as an object to load and in a program. Only NAME.c, where MK_PLUGIN() is, differs; what else
# the plugin consists of is compiled once, as `parts`.
macro(mk_plugin_parts word)
  set(others ${sources})
  list(FILTER others EXCLUDE REGEX "(^|/)${name}\\.c$")
  if(others)
    list(FILTER sources INCLUDE REGEX "(^|/)${name}\\.c$")
    set(parts plugin_${word}_parts)
    add_library(${parts} OBJECT ${others})
    target_include_directories(${parts} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${parts} PRIVATE mk_flags ${libs})
  endif()
endmacro()

# The dynamic linker finds the object of the other one beside this. A plugin that is built in needs no link: the program has
# its functions.
function(mk_calls target folder)
  foreach(other IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER ${other} id)
    get_property(inner GLOBAL PROPERTY MK_INNER_PLUGINS)
    if(NOT other IN_LIST inner AND NOT "all" IN_LIST MK_PLUGINS_STATIC AND NOT other IN_LIST MK_PLUGINS_STATIC)
      target_link_libraries(${target} PRIVATE -L${folder} -l:monkey-${other}.so)
      add_dependencies(${target} plugin_${id})
      set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
    endif()
  endforeach()
endfunction()

# The object of an earlier configure, when the library was there, goes too: the program would load it.
function(mk_leave_out name why)
  message(STATUS "plugin ${name}: left out, ${why}")
  set_property(GLOBAL APPEND PROPERTY MK_LEFT_OUT ${name})
  file(REMOVE ${CMAKE_BINARY_DIR}/plugins/monkey-${name}.so)
endfunction()

function(mk_inner_plugin name option)
  if(NOT ${option})
    mk_leave_out(${name} "${option} is OFF")
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY MK_INNER_PLUGINS ${name})
  set_property(GLOBAL PROPERTY MK_LAYERS_OF_${name} ${ARGN})
  install(FILES ${name}.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/monkey/plugins)
endfunction()

function(mk_plugin name)
  cmake_parse_arguments(arg "COLD" "" "NEEDS;CALLS;LIBS;SOURCES" ${ARGN})
  set(libs ${arg_LIBS})
  if(NOT "all" IN_LIST MK_PLUGINS AND NOT name IN_LIST MK_PLUGINS)
    mk_leave_out(${name} "MK_PLUGINS does not name it")
    return()
  endif()
  get_property(left_out GLOBAL PROPERTY MK_LEFT_OUT)
  foreach(other IN LISTS arg_CALLS)
    if(other IN_LIST left_out)
      mk_leave_out(${name} "it needs ${other}")
      return()
    endif()
  endforeach()
  foreach(package IN LISTS arg_NEEDS)
    string(MAKE_C_IDENTIFIER ${package} id)
    mk_library(${id} ${package})
    if(NOT ${id}_FOUND)
      mk_leave_out(${name} "${package} is not there")
      return()
    endif()
    list(APPEND libs PkgConfig::${id})
  endforeach()
  set(sources ${arg_SOURCES})
  if(NOT sources)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  endif()
  string(MAKE_C_IDENTIFIER ${name} word)
  set_property(GLOBAL APPEND PROPERTY MK_ALL_PLUGINS ${word})
  set(parts "")
  if(MK_TESTS)
    mk_plugin_parts(${word})
  endif()
  install(FILES ${name}.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/monkey/plugins)
  if("all" IN_LIST MK_PLUGINS_STATIC OR name IN_LIST MK_PLUGINS_STATIC)
    set(static TRUE)
    set_property(GLOBAL APPEND PROPERTY MK_BUILT_IN ${word})
  else()
    set(static FALSE)
    add_library(plugin_${word} MODULE ${sources})
    target_link_libraries(plugin_${word} PRIVATE ${parts})
    set_target_properties(plugin_${word} PROPERTIES PREFIX "" OUTPUT_NAME monkey-${name} SUFFIX .so
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
    target_include_directories(plugin_${word} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(plugin_${word} PRIVATE mk_flags ${libs})
    # All objects have a symbol `mk_plugin`: where they are linked with each other, each must use its own.
    target_link_options(plugin_${word} PRIVATE LINKER:-Bsymbolic)
    mk_calls(plugin_${word} ${CMAKE_BINARY_DIR}/plugins ${arg_CALLS})
    set_property(GLOBAL APPEND PROPERTY MK_LOADABLE plugin_${word})
    set_property(GLOBAL APPEND PROPERTY MK_OBJECTS plugin_${word})
    install(TARGETS plugin_${word} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/monkey)
  endif()
  if(static OR MK_TESTS) # the tests have a program with all of them, too
    add_library(plugin_${word}_static OBJECT ${sources})
    target_compile_definitions(plugin_${word}_static PRIVATE MK_PLUGIN_STATIC)
    target_include_directories(plugin_${word}_static PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(plugin_${word}_static PRIVATE mk_flags ${libs})
  endif()
  foreach(target plugin_${word} plugin_${word}_static)
    if(arg_COLD AND TARGET ${target} AND NOT MK_OPTIMIZE STREQUAL "size")
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
    endif()
  endforeach()
endfunction()

# mk_built_in(TARGET PLUGINS...): builds these plugins into it. `inner` gets the layers of inner plugins, which the caller links.
function(mk_built_in target)
  set(declarations "")
  set(places "")
  set(layers "")
  get_property(inner GLOBAL PROPERTY MK_INNER_PLUGINS)
  foreach(word IN LISTS inner)
    string(APPEND declarations "extern const struct mk_plugin mk_plugin_${word};\n")
    string(APPEND places "&mk_plugin_${word}, ")
    get_property(more GLOBAL PROPERTY MK_LAYERS_OF_${word})
    list(APPEND layers ${more})
  endforeach()
  set(inner ${layers} PARENT_SCOPE)
  foreach(word IN LISTS ARGN)
    string(APPEND declarations "extern const struct mk_plugin mk_plugin_${word};\n")
    string(APPEND places "&mk_plugin_${word}, ")
    target_link_libraries(${target} PRIVATE plugin_${word}_static)
    if(TARGET plugin_${word}_parts)
      target_link_libraries(${target} PRIVATE plugin_${word}_parts)
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${target}-builtin.c CONTENT "/* SPDX-License-Identifier: Apache-2.0 */
/* Made by cmake/plugin.cmake: the plugins that are built in. */
#include \"setup/builtin.h\"
@declarations@
const struct mk_plugin *const mk_builtin_plugins[] = {@places@NULL};
" @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_BINARY_DIR}/${target}-builtin.c)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
endfunction()

# mk_program(TARGET PLUGINS...): links all layers and those plugins whole: what only an object to be loaded calls must be
# there too, and seen by it.
function(mk_program target)
  mk_built_in(${target} ${ARGN})
  get_property(optional GLOBAL PROPERTY MK_OPTIONAL_LAYERS)
  mk_link_layers(${target} base os http conf event cgi files web connection logs setup worker server ${optional} ${inner})
  target_link_libraries(${target} PRIVATE mk_flags ${CMAKE_DL_LIBS})
  target_link_libraries(${target} PRIVATE mk_readers) # an archive: only what a built-in plugin calls becomes a part of the program
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ${MK_EXPORTS} POSITION_INDEPENDENT_CODE ${MK_PIE} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  # The layers are compiled for libmonkey too, position-independent; link-time optimisation compiles them again. A static program
  # is loaded at a fixed address.
  if(NOT MK_PIE OR CMAKE_EXE_LINKER_FLAGS MATCHES "-static( |$)")
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_link_options(${target} PRIVATE -fno-pie)
  endif()
endfunction()
