#pragma once

#include <concepts>
#include <type_traits>

/// `fields(visit, message)` names the fields of each message with their numbers in api/fjord.thrift. It serves both
/// writing and reading. `visit(number, member)` leaves a member out if it has the zero value of its type. A member with
/// another default uses `visit.always`.
///
/// The wire type depends on the member's type: bool, enum and uint16_t (i32), larger integers and BucketId (i64),
/// string and GlobalId (binary), vector (list), optional (type of its value, absent if empty), all other types
/// (struct).
namespace fjord::rpc {

template <typename M, typename T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

}  // namespace fjord::rpc
