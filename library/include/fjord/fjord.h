#pragma once

/// Everything that a program needs to use a cluster: `#include <fjord/fjord.h>`, link `fjord::client`.
/// docs/clients/cpp.md explains it by example.
#include "fjord/library/admin.h"
#include "fjord/library/aggregate.h"
#include "fjord/library/arrow.h"
#include "fjord/library/bulk.h"
#include "fjord/library/client.h"
#include "fjord/library/documents.h"
#include "fjord/library/files.h"
#include "fjord/library/jobs.h"
#include "fjord/library/pending.h"
#include "fjord/library/search.h"
#include "fjord/library/subscription.h"
#include "fjord/library/visit.h"
