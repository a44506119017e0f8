# SPDX-License-Identifier: Apache-2.0
# mk_plugin(NAME [NEEDS PKG...] [LIBS LIB...] [SOURCES FILE...]): the plugin of the folder that calls it, out of all its C
# files, or those. They see include/monkey alone. NEEDS are pkg-config names: without them the plugin is left out, and
# said so. With its name (or `all`) in MK_STATIC_PLUGINS it becomes a part of the program, else an object to load,
# monkey-NAME.so.
set(MK_STATIC_PLUGINS "" CACHE STRING "Plugins built into the program: names, or `all`")
set(MK_PLUGIN_DIR ${CMAKE_INSTALL_FULL_LIBDIR}/monkey)
define_property(GLOBAL PROPERTY MK_PLUGINS BRIEF_DOCS "all that can be built here" FULL_DOCS "-")
define_property(GLOBAL PROPERTY MK_BUILT_IN BRIEF_DOCS "those of MK_STATIC_PLUGINS" FULL_DOCS "-")
find_package(PkgConfig QUIET)

function(mk_plugin name)
  cmake_parse_arguments(arg "" "" "NEEDS;LIBS;SOURCES" ${ARGN})
  set(libs ${arg_LIBS})
  foreach(package IN LISTS arg_NEEDS)
    string(MAKE_C_IDENTIFIER ${package} id)
    if(PkgConfig_FOUND)
      pkg_check_modules(${id} QUIET IMPORTED_TARGET ${package})
    endif()
    if(NOT ${id}_FOUND)
      message(STATUS "plugin ${name}: left out, ${package} is not there")
      set_property(GLOBAL APPEND PROPERTY MK_LEFT_OUT ${name})
      return()
    endif()
    list(APPEND libs PkgConfig::${id})
  endforeach()
  set(sources ${arg_SOURCES})
  if(NOT sources)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  endif()
  string(MAKE_C_IDENTIFIER ${name} word)
  set_property(GLOBAL APPEND PROPERTY MK_PLUGINS ${word})
  install(FILES ${name}.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/monkey/plugins)
  install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/plugins RENAME ${name}.md)
  if("all" IN_LIST MK_STATIC_PLUGINS OR name IN_LIST MK_STATIC_PLUGINS)
    set(static TRUE)
    set_property(GLOBAL APPEND PROPERTY MK_BUILT_IN ${word})
  else()
    set(static FALSE)
    add_library(plugin_${word} MODULE ${sources})
    set_target_properties(plugin_${word} PROPERTIES PREFIX "" OUTPUT_NAME monkey-${name} SUFFIX .so
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
    target_include_directories(plugin_${word} PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(plugin_${word} PRIVATE mk_flags ${libs})
    set_property(GLOBAL APPEND PROPERTY MK_LOADABLE plugin_${word})
    install(TARGETS plugin_${word} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/monkey)
  endif()
  if(static OR MK_TESTS) # the tests have a program with all of them, too
    add_library(plugin_${word}_static OBJECT ${sources})
    target_compile_definitions(plugin_${word}_static PRIVATE MK_PLUGIN_STATIC)
    target_include_directories(plugin_${word}_static PRIVATE ${CMAKE_SOURCE_DIR}/include ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(plugin_${word}_static PRIVATE mk_flags ${libs})
  endif()
endfunction()

# mk_program(TARGET PLUGINS...): links all layers and those plugins whole: what only an object to be loaded calls must be
# there too, and seen by it.
function(mk_program target)
  set(declarations "")
  set(places "")
  foreach(word IN LISTS ARGN)
    string(APPEND declarations "extern const struct mk_plugin mk_plugin_${word};\n")
    string(APPEND places "&mk_plugin_${word}, ")
    target_link_libraries(${target} PRIVATE plugin_${word}_static)
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${target}-builtin.c CONTENT "/* SPDX-License-Identifier: Apache-2.0 */
/* Made by cmake/plugin.cmake: the plugins that are built in. */
#include \"server/builtin.h\"
@declarations@
const struct mk_plugin *const mk_builtin_plugins[] = {@places@NULL};
" @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_BINARY_DIR}/${target}-builtin.c)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  foreach(layer base os http conf net web proto server cli)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:mk_${layer}>)
  endforeach()
  get_property(vendors GLOBAL PROPERTY MK_VENDORS)
  target_link_libraries(${target} PRIVATE mk_flags ${vendors} ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()
