#include "http/selection_write.h"

#include <catch2/catch.hpp>

#include "fjord/visitors/session_cursor.h"

namespace fjord::gateway {
namespace {

/// A run that has written this many documents and has half of the bucket space left.
SelectionRun half_done(std::uint64_t applied) {
  SelectionRun run;
  run.summary.applied = applied;
  visitors::SessionCursor position;
  position.question = 7;
  position.done.add(visitors::PositionRange::slice(0, 2));
  run.summary.cursor = "fjord-bulk-1 bulk-1 0\n" + position.to_text() + '\n';
  return run;
}

HttpAnswer answer_to(const SelectionRun& run) {
  const HttpRequest request{.method = "DELETE", .target = "/document/v1/t/x/docid?selection=true", .body = ""};
  return selection_answer(request, run);
}

/// True if the client is told to go on: a program that repeats the request until there is no token is not done.
bool goes_on(const HttpAnswer& answer) {
  return answer.status == 200 && answer.body.find("\"continuation\"") != std::string::npos;
}

}  // namespace

TEST_CASE("change by selection: a document that can be written later leaves a continuation") {
  for (const StatusCode code : {StatusCode::Busy, StatusCode::Unavailable, StatusCode::Timeout, StatusCode::NotReady}) {
    INFO(to_string(code));
    SelectionRun run = half_done(3);
    run.note_failure("id:t:x::1", Status(code, "too much to do"));
    run.summary.failed[code] = 1;
    CHECK(goes_on(answer_to(run)));
    CHECK(answer_to(run).body.find("\"documentCount\":3") != std::string::npos);
  }
}

TEST_CASE(
    "change by selection: without any progress a failure is an error, and the client need not ask at once again") {
  SelectionRun run = half_done(0);
  run.note_failure("id:t:x::1", Status(StatusCode::Unavailable, "too much to do"));
  CHECK(answer_to(run).status == 503);
  run.summary.skipped = 1;
  CHECK(goes_on(answer_to(run)));
}

TEST_CASE("change by selection: an error that stays is an error, in whichever order failures come") {
  for (const bool is_first : {true, false}) {
    SelectionRun run = half_done(3);
    if (!is_first) run.note_failure("id:t:x::1", Status(StatusCode::Busy, "too much to do"));
    run.note_failure("id:t:x::2", Status(StatusCode::TooLarge, "for ever"));
    if (is_first) run.note_failure("id:t:x::1", Status(StatusCode::Busy, "too much to do"));
    const HttpAnswer answer = answer_to(run);
    CHECK(answer.status >= 400);
    CHECK(answer.body.find("id:t:x::2") != std::string::npos);
  }
}

TEST_CASE(
    "change by selection: a removal is confirmed by a number that is large enough, or by all if it is not known") {
  const HttpRequest request{.method = "DELETE", .target = "/document/v1/t/x/docid?selection=true", .body = ""};
  const auto refused = [&](std::optional<std::int64_t> confirmed, std::uint64_t matched, bool has_more) {
    SelectionWish wish;
    wish.confirmed = confirmed;
    BulkSummary counted;
    counted.matched = matched;
    counted.has_more = has_more;
    const auto answer = unconfirmed_answer(request, wish, counted);
    if (answer) CHECK(answer->status == 428);
    return answer ? answer->body : std::string();
  };
  CHECK(refused(std::nullopt, 0, false).empty());
  CHECK(refused(5, 5, false).empty());
  CHECK(refused(5, 6, false).find("6 documents match, and confirm is 5;") != std::string::npos);
  CHECK(refused(std::nullopt, 6, false).find("confirm=6 in the query") != std::string::npos);
  // The count took too long, so the number is not known.
  CHECK(refused(100, 6, true).find("at least 6 documents match") != std::string::npos);
  CHECK(refused(100, 6, true).find("confirm=all in the query") != std::string::npos);
  SelectionWish wish;
  BulkSummary failed;
  failed.status = Status(StatusCode::Unavailable, "too much to do");
  CHECK(unconfirmed_answer(request, wish, failed)->status == 503);
}

TEST_CASE("change by selection: a run that is complete has no continuation, one with more has") {
  SelectionRun run = half_done(3);
  CHECK(answer_to(run).status == 200);
  CHECK_FALSE(goes_on(answer_to(run)));
  run.summary.has_more = true;
  CHECK(goes_on(answer_to(run)));
  run.summary.has_more = false;
  run.summary.status = Status(StatusCode::Cancelled, "the gateway ends");
  CHECK(goes_on(answer_to(run)));
}

}  // namespace fjord::gateway
