#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/affinity/query_log.h"
#include "fjord/common/random.h"
#include "fjord/common/result.h"

namespace fjord::affinity {

/// Queries from which logs are drawn, as sequences of words.
struct QuerySource {
  std::vector<std::string> vocabulary;       ///< By WordId.
  std::vector<std::vector<WordId>> queries;  ///< A word may come twice.
  std::vector<std::uint32_t> queries_with;   ///< By WordId: queries that have the word.
};

/// Reads lines `number<tab>query`; a colon may stand for the tab. Words are runs of letters, digits and underscores in
/// lower case. Lines that are not UTF-8 are taken for Latin-1.
/// Errors: InvalidArgument names a line without a number, or says that there are no queries.
Result<QuerySource> parse_queries(std::string_view text);

/// Queries without a file: each takes a piece of an earlier one and goes on with words by Zipf's law, so that words
/// occur together again. It has no topics.
QuerySource synthetic_queries(std::size_t queries, std::size_t words, Random& random);

enum class Split {
  Resample,  ///< Train, validation and test log are each drawn from all queries of the source.
  Disjoint,  ///< The queries of the source are first parted 5:1:4 among them, by hash.
};

enum class ListSizes {
  GrowWithUse,  ///< A list has pages in proportion to the queries that have its word.
  UnlikeUse,    ///< Sizes grow more slowly than use and differ much among words that are used as often.
};

struct GeneratorOptions {
  std::size_t queries = 150'000;  ///< Length of each log.
  Split split = Split::Resample;
  ListSizes sizes = ListSizes::GrowWithUse;
  std::size_t regions = 1;  ///< Each draws from its own part of the source; the parts overlap.
  std::uint64_t seed = 1;
};

struct LogSet {
  QueryLog train;
  QueryLog valid;
  QueryLog test;
};

/// Logs and the words that they have.
struct Corpus {
  std::vector<std::string> vocabulary;
  ListPages pages;
  std::vector<std::uint64_t> hashes;  ///< Hash of the text of each word.
  std::vector<LogSet> regions;
};

/// Makes logs of any length from a source. A query repeats an earlier one of its log, or follows a query of the source
/// word by word and sometimes goes on behind another occurrence of a word; the most frequent words are pinned in memory
/// and left out; most queries get a rare word, whose frequencies follow a Pitman-Yor process. The same options give the
/// same logs.
Corpus generate_logs(const QuerySource& source, const GeneratorOptions& options);

/// Similarity of two logs: over all words, the sum of the smaller numbers of pages accessed over that of the greater
/// ones [CALB 2019, 5.5].
double weighted_jaccard(const QueryLog& a, const QueryLog& b, const ListPages& pages);

}  // namespace fjord::affinity
