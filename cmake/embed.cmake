# SPDX-License-Identifier: Apache-2.0
# mk_embeddable(TARGET PLUGINS...): the library TARGET.so out of the objects of the server, without its processes, and with
# these plugins. src/lib/platform.c tells the layers that the process is not theirs.
# mk_embeddable_static(TARGET NAME NAMES LAYERS PLUGINS...): the same as an archive NAME.a, with the object for TLS and with these
# layers, which shows the public names of the file NAMES alone.
# mk_embeddable_program(TARGET PLUGINS...): makes them, and the test client, a part of an executable, which shows their public names
# to plugins.
define_property(GLOBAL PROPERTY MK_EMBED_LIBS BRIEF_DOCS "libraries that the archive needs" FULL_DOCS "-")
define_property(GLOBAL PROPERTY MK_EMBED_PACKAGES BRIEF_DOCS "their packages, for what they need in turn" FULL_DOCS "-")
include(symbols)
set(map ${CMAKE_BINARY_DIR}/libmonkey.map)
set(public_names ${CMAKE_BINARY_DIR}/libmonkey.names)
set(test_names ${CMAKE_BINARY_DIR}/libmonkey-test.names)

# The list of plugins is compiled for the target; `variable` gets the objects of the layers, `inner` the layers of plugins.
function(mk_embeddable_parts target variable)
  mk_built_in(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE mk_flags ${CMAKE_DL_LIBS})
  set(objects "")
  get_property(optional GLOBAL PROPERTY MK_OPTIONAL_LAYERS)
  foreach(layer base os http conf event cgi readers files web connection logs setup worker lib ${optional} ${inner})
    list(APPEND objects $<TARGET_OBJECTS:mk_${layer}>)
  endforeach()
  foreach(layer IN LISTS optional inner)
    get_target_property(libraries mk_${layer} LINK_LIBRARIES)
    list(FILTER libraries EXCLUDE REGEX "^mk_")
    target_link_libraries(${target} PRIVATE ${libraries})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
  set(inner ${inner} PARENT_SCOPE)
endfunction()

function(mk_embeddable target)
  mk_public_symbols(${map} ${public_names} ${test_names})
  add_library(${target} SHARED)
  mk_embeddable_parts(${target} objects ${ARGN})
  target_sources(${target} PRIVATE ${objects})
  add_dependencies(${target} public_symbols)
  # Calls of our own functions are ours, whatever the program around us has under the same names. The library stays: threads
  # that end later call functions of it.
  target_link_options(${target} PRIVATE LINKER:-Bsymbolic LINKER:-z,nodelete LINKER:--version-script=${map})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME monkey VERSION 1.0.0 SOVERSION 1
    LINK_DEPENDS ${map} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library)
  # The dynamic linker finds a library in /usr/local/lib once its cache is made again.
  install(CODE "
    find_program(LDCONFIG ldconfig PATHS /sbin /usr/sbin)
    if(LDCONFIG AND \"\$ENV{DESTDIR}\" STREQUAL \"\")
      execute_process(COMMAND \${LDCONFIG} OUTPUT_QUIET ERROR_QUIET)
    endif()" COMPONENT library)
endfunction()

function(mk_embeddable_program target)
  mk_embeddable_parts(${target} objects ${ARGN})
  target_sources(${target} PRIVATE ${objects} $<TARGET_OBJECTS:mk_test_client>)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

# Adds the libraries that pkg-config found for this target to those that programs with the archive must link.
function(mk_embed_libraries target)
  get_target_property(linked ${target} LINK_LIBRARIES)
  foreach(library IN LISTS linked)
    if(library MATCHES "^PkgConfig::(.+)")
      get_property(packages GLOBAL PROPERTY MK_PACKAGES_OF_${CMAKE_MATCH_1})
      set_property(GLOBAL APPEND PROPERTY MK_EMBED_PACKAGES ${packages})
      get_target_property(files ${library} INTERFACE_LINK_LIBRARIES)
      foreach(file IN LISTS files)
        if(file MATCHES "/lib([^/]+)\\.(so|a)$")
          set_property(GLOBAL APPEND PROPERTY MK_EMBED_LIBS ${CMAKE_MATCH_1})
        endif()
      endforeach()
    endif()
  endforeach()
endfunction()

# All of it is linked into one object, so that nothing but the public names can meet those of a program.
function(mk_embeddable_static target name names layers)
  add_library(${target}_parts OBJECT)
  mk_embeddable_parts(${target}_parts objects ${ARGN})
  list(APPEND objects $<TARGET_OBJECTS:${target}_parts>)
  foreach(layer IN LISTS layers)
    list(APPEND objects $<TARGET_OBJECTS:mk_${layer}>)
  endforeach()
  foreach(word IN LISTS ARGN)
    list(APPEND objects $<TARGET_OBJECTS:plugin_${word}_static>)
    if(TARGET plugin_${word}_parts)
      list(APPEND objects $<TARGET_OBJECTS:plugin_${word}_parts>)
    endif()
  endforeach()
  if(TARGET mk_libc)
    list(APPEND objects $<TARGET_OBJECTS:mk_libc>)
  endif()
  get_property(optional GLOBAL PROPERTY MK_OPTIONAL_LAYERS)
  foreach(layer IN LISTS optional inner)
    mk_embed_libraries(mk_${layer})
  endforeach()
  if(TARGET mk_tls) # OpenSSL is found by CMake, not by pkg-config
    list(APPEND objects $<TARGET_OBJECTS:mk_tls>)
    set_property(GLOBAL APPEND PROPERTY MK_EMBED_LIBS ssl crypto)
    set_property(GLOBAL APPEND PROPERTY MK_EMBED_PACKAGES libssl libcrypto)
  endif()
  foreach(word IN LISTS ARGN)
    mk_embed_libraries(plugin_${word}_static)
  endforeach()
  set(link ${CMAKE_C_COMPILER} -r -nostdlib)
  if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND link -O2 -flto=auto -flinker-output=nolto-rel $<IF:$<BOOL:${MK_PIE}>,-fPIC,-fno-pie> -ffunction-sections -fdata-sections)
  endif()
  set(whole ${CMAKE_CURRENT_BINARY_DIR}/${target}.o)
  set(archive ${CMAKE_BINARY_DIR}/${name}.a)
  add_custom_command(OUTPUT ${archive}
    COMMAND ${link} -o ${whole} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbols=${names} ${whole}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${whole}
    DEPENDS ${objects} ${names} public_symbols
    COMMENT "Linking ${name}.a" COMMAND_EXPAND_LISTS VERBATIM)
  # A part of what `cmake --install` installs. Builds for tests make it where they need it.
  set(always ALL)
  if(MK_TESTS OR MK_FUZZ)
    set(always "")
  endif()
  add_custom_target(${target} ${always} DEPENDS ${archive})
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endfunction()
