# SPDX-License-Identifier: Apache-2.0
# An object that shares structs with the program must be of the same build. MK_BUILD_ID, a number made of all headers and of what
# decides how they are compiled, tells builds apart.
#
#   mk_build_id(LAYER...)   lets these layers include "build_id.h", which defines it
set(MK_BUILD_ID ${CMAKE_CURRENT_LIST_FILE})

function(mk_build_id)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.h ${CMAKE_SOURCE_DIR}/include/monkey/*.h)
  set(how "${PROJECT_VERSION} ${CMAKE_SYSTEM_PROCESSOR} ${CMAKE_BUILD_TYPE} ${CMAKE_C_FLAGS} sanitize ${MK_SANITIZE}")
  set(id ${CMAKE_BINARY_DIR}/build_id/build_id.h)
  add_custom_command(OUTPUT ${id}
    COMMAND ${CMAKE_COMMAND} "-DHOW=${how}" -DOUT=${id} -DSOURCE=${CMAKE_SOURCE_DIR} -P ${MK_BUILD_ID}
    DEPENDS ${headers} ${MK_BUILD_ID}
    COMMENT "Numbering this build"
    VERBATIM)
  add_custom_target(build_id DEPENDS ${id})
  foreach(layer IN LISTS ARGN)
    if(TARGET mk_${layer})
      add_dependencies(mk_${layer} build_id)
      target_include_directories(mk_${layer} PRIVATE ${CMAKE_BINARY_DIR}/build_id)
    endif()
  endforeach()
endfunction()

# Below: the same file as a script.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()
file(GLOB_RECURSE headers RELATIVE ${SOURCE} ${SOURCE}/src/*.h ${SOURCE}/include/monkey/*.h)
list(SORT headers)
set(all "${HOW}")
foreach(header IN LISTS headers)
  file(SHA256 ${SOURCE}/${header} hash)
  string(APPEND all "\n${header} ${hash}")
endforeach()
string(SHA256 id "${all}")
string(SUBSTRING ${id} 0 8 id)
file(WRITE ${OUT} "/* SPDX-License-Identifier: Apache-2.0 */
/* Made by cmake/buildid.cmake. */
#define MK_BUILD_ID 0x${id}u
")
