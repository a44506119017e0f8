/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the implementation for processors without SSE2. */
#undef __SSE2__
#include "unit/http/test_scan.c" // NOLINT
