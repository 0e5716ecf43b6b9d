// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Deposits and redemptions of one vault that wait for the next price
/// @notice A request is taken at any time. It settles at the vault's own price once every held token's price was observed
/// after the request was made, so nobody enters or leaves at a price that is older than the request. Names and request
/// events are those of ERC-7540. Settlement also delivers: shares go to the controller, and USDC too unless its transfer
/// fails (`claimableAssets`).
interface IRequestQueue {
    /// @param controller Who gets the shares or the USDC, and may cancel
    /// @param madeAt When the request was made, in Unix seconds
    /// @param amount What still waits: USDC of a deposit, shares of a redemption; 0 once settled or cancelled
    struct Request {
        address controller;
        uint40 madeAt;
        uint128 amount;
    }

    event DepositRequest(
        address indexed controller, address indexed owner, uint256 indexed requestId, address sender, uint256 assets
    );
    event RedeemRequest(
        address indexed controller, address indexed owner, uint256 indexed requestId, address sender, uint256 shares
    );
    event DepositRequestSettled(address indexed controller, uint256 indexed requestId, uint256 assets, uint256 shares);
    /// @param pending Shares that still wait for idle USDC
    event RedeemRequestSettled(
        address indexed controller, uint256 indexed requestId, uint256 shares, uint256 assets, uint256 pending
    );
    event DepositRequestCanceled(address indexed controller, uint256 indexed requestId, uint256 assets);
    event RedeemRequestCanceled(address indexed controller, uint256 indexed requestId, uint256 shares);
    /// @notice The controller could not be paid; `claimAssets` tries again
    event PayoutHeld(address indexed controller, uint256 indexed requestId, uint256 assets);
    event AssetsClaimed(address indexed controller, uint256 assets);

    error ZeroAddress();
    /// @notice Only the owner of USDC or shares makes a request with them
    error NotOwner(address owner, address caller);
    /// @notice Only the request's controller cancels it
    error NotController(address controller, address caller);
    error RequestTooSmall(uint256 assets, uint256 minimum);
    /// @notice The request never existed, has settled, or was cancelled
    error RequestNotPending(uint256 requestId);

    /// @notice Takes `assets` USDC from the caller, who is `owner`, for shares of `controller`
    /// @return requestId Counts deposit requests from 1
    function requestDeposit(uint256 assets, address controller, address owner) external returns (uint256 requestId);

    /// @notice Takes `shares` from the caller, who is `owner`, for USDC of `controller`; locked shares do not move
    /// @return requestId Counts redeem requests from 1
    function requestRedeem(uint256 shares, address controller, address owner) external returns (uint256 requestId);

    /// @notice Gives what still waits back to the controller, who calls
    function cancelDepositRequest(uint256 requestId, address controller) external;

    /// @notice Gives what still waits back to the controller, who calls
    function cancelRedeemRequest(uint256 requestId, address controller) external;

    /// @notice Settles requests in their order, deposits first; anyone may call. A redemption that idle USDC does not cover
    /// is paid in part and keeps its place. Settles nothing while `settleableBefore()` is 0: a share price that has jumped
    /// is accepted by those who call the vault's `checkpointSharePrice`, not here.
    /// @param maxDeposits How many deposit requests to look at, cancelled ones included
    /// @param maxRedemptions How many redeem requests to look at
    /// @return deposits Deposit requests that have settled
    /// @return redemptions Redeem requests that were paid, in full or in part
    function settle(uint256 maxDeposits, uint256 maxRedemptions)
        external
        returns (uint256 deposits, uint256 redemptions);

    /// @notice Pays a controller what could not be paid when its requests settled; anyone may call
    function claimAssets(address controller) external returns (uint256 assets);

    /// @notice Requests made before this time settle now; 0 = none. It is when the oldest price of the held tokens was
    /// observed. It is 0 while the vault is closed, and while what its assets are worth at least and at most differs by
    /// more than `MAX_SPREAD_BPS`: a stale price, a token that cannot be sold, or a pool that disagrees.
    function settleableBefore() external view returns (uint256);

    function pendingDepositRequest(uint256 requestId, address controller) external view returns (uint256 assets);
    function pendingRedeemRequest(uint256 requestId, address controller) external view returns (uint256 shares);
    function depositRequest(uint256 requestId) external view returns (Request memory);
    function redeemRequest(uint256 requestId) external view returns (Request memory);

    /// @notice The ids of the next requests to settle, and of the next to be made
    function heads()
        external
        view
        returns (uint256 nextDeposit, uint256 newDeposit, uint256 nextRedeem, uint256 newRedeem);

    /// @notice USDC that settled for `controller` and could not be paid
    function claimableAssets(address controller) external view returns (uint256);
    function vault() external view returns (address);
}
