#include "schema_deployment.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <set>
#include <utility>

#include "fjord/document/document_type.h"
#include "fjord/document/garbage_rules.h"
#include "fjord/document/schema_change.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::fleetcontroller {
namespace {

Result<std::vector<std::string>> merge_schemas(std::vector<std::string> schemas, const rpc::DeploySchemas& request) {
  for (const std::string& text : request.schemas) {
    FJORD_TRY_ASSIGN(const std::string name, schema_name(text));
    auto same = std::find_if(schemas.begin(), schemas.end(), [&](const std::string& old) {
      Result<std::string> old_name = schema_name(old);
      return old_name && *old_name == name;
    });
    if (same == schemas.end()) {
      schemas.push_back(text);
    } else {
      *same = text;
    }
  }
  return schemas;
}

std::vector<std::string> with_builtin(const std::vector<std::string>& schemas) {
  std::vector<std::string> all = rpc::builtin_schemas();
  all.insert(all.end(), schemas.begin(), schemas.end());
  return all;
}

/// The most deployments with dropped fields that are remembered.
constexpr std::size_t kDroppedMax = 32;

using Types = std::shared_ptr<const DocumentTypeRepo>;

Result<Types> types_of(const std::vector<std::string>& schemas) {
  auto types = DocumentTypeRepo::build(with_builtin(schemas));
  if (!types) return types.error().with_context("the schemas so far");
  return types;
}

bool is_removal(const SchemaProblem& problem) {
  return problem.kind == SchemaProblem::Kind::FieldRemoved || problem.kind == SchemaProblem::Kind::TypeRemoved;
}

/// Checks that nothing that was dropped once comes back as something else: documents may still have its values.
Status check_returned(const SchemaRecord& before, const DocumentTypeRepo& now, const DocumentTypeRepo& types,
                      const std::vector<std::string>& may_drop) {
  for (const std::vector<std::string>& schemas : before.dropped) {
    FJORD_TRY_ASSIGN(const Types old, types_of(schemas));
    std::set<std::pair<std::string, SchemaProblem::Kind>> known;
    for (const SchemaProblem& problem : schema_problems(*old, now)) known.emplace(problem.place, problem.kind);
    for (const SchemaProblem& problem : schema_problems(*old, types)) {
      const bool is_allowed = std::find(may_drop.begin(), may_drop.end(), problem.place) != may_drop.end();
      if (is_removal(problem) || is_allowed || known.contains({problem.place, problem.kind})) continue;
      return {
          StatusCode::InvalidArgument,
          fmt::format("{}: it was dropped earlier, and {}. Documents may still have the dropped values: deploy it as "
                      "it was, clear it in all documents, and drop it again; or give it another name. If no document "
                      "has it: fjord schema deploy --allow-drop '{}'",
                      problem.place, problem.why, problem.place)};
    }
  }
  return Status::ok();
}

}  // namespace

Result<SchemaRecord> deploy_schemas(const SchemaRecord& before, const rpc::DeploySchemas& request,
                                    std::vector<std::string>& warnings) {
  FJORD_TRY_ASSIGN(std::vector<std::string> merged, merge_schemas(before.schemas, request));
  const std::vector<std::string> all = with_builtin(merged);
  std::vector<SchemaWarning> found;
  FJORD_TRY_ASSIGN(const auto types, DocumentTypeRepo::build(all, &found));
  FJORD_TRY(GarbageRules::check(*types));
  FJORD_TRY_ASSIGN(const Types now, types_of(before.schemas));
  FJORD_TRY(check_schema_change(*now, *types, {.may_drop = request.may_drop}));
  FJORD_TRY(check_returned(before, *now, *types, request.may_drop));
  for (SchemaWarning& warning : found) {
    const auto& deployed = request.schemas;
    const bool is_new = std::find(deployed.begin(), deployed.end(), all[warning.text]) != deployed.end();
    if (is_new) warnings.push_back(std::move(warning.message));
  }
  if (merged == before.schemas) return before;
  SchemaRecord record{before.version + 1, std::move(merged), before.dropped};
  const std::vector<SchemaProblem> lost = schema_problems(*now, *types);
  if (std::any_of(lost.begin(), lost.end(), is_removal)) record.dropped.push_back(before.schemas);
  if (record.dropped.size() > kDroppedMax) record.dropped.erase(record.dropped.begin());
  return record;
}

}  // namespace fjord::fleetcontroller
