# SPDX-License-Identifier: Apache-2.0
# mk_websocket_sources(SOURCES LIBS): the files of src/websocket, and what they link: zlib, where it is there.
function(mk_websocket_sources sources_out libs_out)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/websocket/*.c)
  mk_library(zlib zlib)
  if(zlib_FOUND)
    list(FILTER sources EXCLUDE REGEX "/ws_coder_none\\.c$")
    set(${libs_out} PkgConfig::zlib PARENT_SCOPE)
  else()
    list(FILTER sources EXCLUDE REGEX "/ws_coder_zlib\\.c$")
    set(${libs_out} "" PARENT_SCOPE)
  endif()
  set(${sources_out} "${sources}" PARENT_SCOPE)
endfunction()
