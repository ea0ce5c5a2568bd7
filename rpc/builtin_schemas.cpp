#include "fjord/rpc/cluster_snapshot.h"

/// Schemas of the documents that Fjord itself stores: tuples, results and the records of MapReduce jobs, and what
/// searches need: voting tables, synonyms, and the queries that were recorded. They are here and not in mapreduce and
/// search, because each snapshot has them, whatever is linked.
namespace fjord::rpc {

const std::vector<std::string>& builtin_schemas() {
  static const std::vector<std::string> schemas = {
      R"(document fjord_tuples {
  field job type string { header }
  field source type long { header }
  field destination type int { header }
  field counter type int { header }
  field tuples type raw { body }
}
)",
      R"(document fjord_result {
  field job type string { header }
  field key type string { header }
  field value type string { body }
}
)",
      R"(document fjord_job {
  field job type string { header }
  field kind type int { header }
  field revision type long { header }
  field epoch type long { header }
  field owner type string { header }
  field owner_id type long { header }
  field finished_unix_us type long { header }
  field record type raw { body }
}
)",
      R"(document fjord_affinity {
  field number type long { header }
  field part type int { header }
  field parts type int { header }
  field content type raw { body }
}
)",
      R"(document fjord_synonyms {
  field number type long { header }
  field terms type string { body }
}
)",
      R"(document fjord_queries {
  field broker type string { header }
  field queries type string { body }
}
)"};
  return schemas;
}

}  // namespace fjord::rpc
