#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/rpc/search_messages.h"
#include "fjord/search/auction.h"

namespace fjord::search {

/// Convert hits to messages and back.
rpc::SearchHit to_message(Hit hit);
Hit from_message(rpc::SearchHit hit);

/// Errors: InvalidArgument for what SearchContext::parse() refuses, and for a key that occurs twice.
Result<SearchContext> context_of(const std::vector<rpc::Parameter>& parameters);

}  // namespace fjord::search
