"""Where candidates come from: each channel hands over ranked lists of rids and scores."""
