// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title The criteria of a promotion to the next track
/// @notice The requirements are the configuration of the track that the agent leaves; the values are what it did since
/// it entered that track. All amounts are USDC base units.
interface IPromotionCriteria {
    /// @param fromTrack The agent's track
    /// @param toTrack The next one
    /// @param trades Swaps since the agent entered the track
    /// @param enteredAt When it entered the track
    /// @param score See `scoreOf`
    /// @param realizedPnlUsdc Realized since it entered the track
    /// @param drawdownBps The worst drawdown, of the allocation cap and the highest realized PnL: the realized one, on paper
    /// also that of the open positions at each trade, and always that of the open positions now
    /// @param dayLossUsdc The largest loss realized within one UTC day
    /// @param maxDayLossUsdc 0 = no limit
    /// @param openPositions Open positions whose capital mode is not that of the next track
    /// @param unrealizedPnlUsdc Of the open positions, at the last prices
    /// @param holdingPnlUsdc What the agent would have made on a paper track if it had sold nothing; 0 on real capital
    /// @param firstLossUsdc What the shares that answer for the agent's losses are worth
    /// @param requiredFirstLossUsdc What they must be worth for the next track
    /// @param isEligible Whether all criteria hold
    struct Criteria {
        uint8 fromTrack;
        uint8 toTrack;
        uint256 trades;
        uint256 minTrades;
        uint64 enteredAt;
        uint256 evaluationPeriod;
        uint256 score;
        uint256 minScore;
        int256 realizedPnlUsdc;
        uint256 drawdownBps;
        uint256 maxDrawdownBps;
        uint256 dayLossUsdc;
        uint256 maxDayLossUsdc;
        uint256 openPositions;
        int256 unrealizedPnlUsdc;
        int256 holdingPnlUsdc;
        uint256 firstLossUsdc;
        uint256 requiredFirstLossUsdc;
        bool isEligible;
    }

    error TooFewTrades(uint256 agentId, uint256 trades, uint256 minTrades);
    error EvaluationPeriodNotOver(uint256 agentId, uint256 endsAt);
    error DrawdownLimitBreached(uint256 agentId, uint256 drawdownBps, uint256 maxDrawdownBps);
    error DailyLossLimitBreached(uint256 agentId, uint256 lossUsdc, uint256 maxLossUsdc);
    error ScoreTooLow(uint256 agentId, uint256 score, uint256 minScore);
    /// @notice The agent has open positions whose capital mode is not that of the next track
    error OpenPositionsOfOtherMode(uint256 agentId, uint256 count);

    /// @notice The agent's owner must lock shares worth `requiredUsdc`, which answer for the agent's losses
    error FirstLossMissing(uint256 agentId, uint256 lockedUsdc, uint256 requiredUsdc);

    /// @notice The agent's present owner has claimed no certificate of the examination that the agent's track requires
    error ExaminationMissing(uint256 agentId, bytes32 examination);

    /// @notice Reverts with the first criterion that the agent misses, in the order of the errors above
    function check(uint256 agentId, uint8 toTrack) external view;

    /// @notice Returns every criterion of the promotion to the next track, with its present value
    function criteriaOf(uint256 agentId) external view returns (Criteria memory);

    /// @notice Returns the examination that a promotion from the agent's track requires, and the agent's certificate of it
    /// @dev Zero where the track requires none, or the agent's owner has claimed none. A certificate is the claim of the
    /// owner: who has the agent's program recomputes it.
    function examinationOf(uint256 agentId) external view returns (bytes32 examination, bytes32 certificate);

    /// @notice Returns the agent's score on its track, 0 to 100
    /// @dev 0 without a profit. The profit is the realized PnL, less the unrealized loss of the open positions, and less what
    /// holding the same tokens would have made. Up to 60 points for the return, profit over the allocation cap, in
    /// proportion up to 500 bps; and up to 40 points for staying clear of the drawdown limit: the share of
    /// `maxDrawdownBps` that the worst realized drawdown left unused (all of them where the track has no limit).
    function scoreOf(uint256 agentId) external view returns (uint256);
}
