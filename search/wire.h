#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/rpc/search_messages.h"
#include "fjord/search/auction.h"

namespace fjord::search {

/// Between hits and their messages.
rpc::SearchHit to_message(Hit hit);
Hit from_message(rpc::SearchHit hit);

/// Errors: InvalidArgument as by SearchContext::parse(); a key that is there twice, too.
Result<SearchContext> context_of(const std::vector<rpc::Parameter>& parameters);

}  // namespace fjord::search
