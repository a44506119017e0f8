/* SPDX-License-Identifier: Apache-2.0 */
#include "tracker.h"

DUDA_SERVICE(tracker, DUDA_GROUP("", issues, "The issues."));
