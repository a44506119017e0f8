# SPDX-License-Identifier: Apache-2.0
# Looks for OpenSSL 3, which the object `tls` links.
set(MK_TLS AUTO CACHE STRING "TLS by OpenSSL 3: ON, OFF, or AUTO if it is there")
mk_forget_missing(OPENSSL_INCLUDE_DIR OPENSSL_CRYPTO_LIBRARY OPENSSL_SSL_LIBRARY)
if(NOT MK_LIBRARIES)
  set(MK_TLS OFF)
elseif(MK_TLS STREQUAL "AUTO")
  find_package(OpenSSL 3.0 QUIET)
elseif(MK_TLS)
  find_package(OpenSSL 3.0 REQUIRED)
endif()
