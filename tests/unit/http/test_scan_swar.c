/* SPDX-License-Identifier: Apache-2.0 */
/* What processors without SSE2 do. */
#undef __SSE2__
#include "unit/http/test_scan.c" // NOLINT
